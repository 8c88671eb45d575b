"""The parts of Ray that are Ray's own are where they were read; what a later Ray has moved is named here."""

import inspect
from importlib.util import find_spec

import pytest
import ray

from orchestrator.cluster import ray_internals
from orchestrator.cluster.session import KEYS


def test_they_were_read_in_the_ray_that_is_installed():
    assert ray_internals.__doc__ is not None
    assert f"Ray {ray.__version__}" in ray_internals.__doc__, "read each again in this Ray, then name its version"


def test_ray_reads_its_mode_again(monkeypatch):
    from ray._raylet import get_authentication_mode

    modes = []
    with monkeypatch.context() as patch:
        for mode in ("disabled", "token"):
            patch.setenv("RAY_AUTH_MODE", mode)
            ray_internals.read_mode_again()
            modes.append(int(get_authentication_mode()))
    ray_internals.read_mode_again()
    assert modes[0] != modes[1]


def test_living_nodes_are_asked_for_without_joining_their_cluster():
    from ray._raylet import InnerGcsClient
    from ray.core.generated.gcs_pb2 import GcsNodeInfo

    asked_by = InnerGcsClient.get_all_node_info.__doc__.splitlines()[0]
    assert "timeout:" in asked_by and "state_filter:" in asked_by
    assert "node_manager_hostname" in GcsNodeInfo.DESCRIPTOR.fields_by_name
    assert GcsNodeInfo.GcsNodeState.Value("ALIVE") == GcsNodeInfo.ALIVE


def test_the_names_of_sent_variables_are_one_set_that_tune_reads():
    names = ray_internals.propagated_variables()
    assert isinstance(names, set)
    before = set(names)
    try:
        names.difference_update(KEYS)
        assert not ray_internals.propagated_variables() & set(KEYS)
    finally:
        names.update(before)


def test_a_trial_with_no_variables_to_send_has_no_environment_of_its_own():
    from ray.tune.execution.class_cache import _ActorClassCache

    class Trainable:
        pass

    def environment() -> dict[str, str]:
        return dict(_ActorClassCache().get(Trainable)._default_options["runtime_env"])

    before = environment()
    with ray_internals.sending_no_variables():
        assert environment() == {}
    assert environment() == before != {}


@pytest.mark.parametrize("is_verbose", [False, True])
def test_what_a_sweep_on_one_machine_does_not_use_is_left_out_of_its_cluster_and_of_no_other(is_verbose):
    from ray._private import utils
    from ray._private.node import Node

    names = ("start_monitor", "start_api_server", "start_log_monitor")
    before = [getattr(Node, name) for name in names], utils.get_dashboard_dependency_error
    node = Node.__new__(Node)
    with ray_internals.starting_little(is_verbose):
        node.start_api_server(include_dashboard=False, raise_on_failure=False)
        node.start_monitor()
        assert node.webui_url == ""
        assert (Node.start_log_monitor is before[0][2]) == is_verbose
    assert before == ([getattr(Node, name) for name in names], utils.get_dashboard_dependency_error)


def test_the_streams_of_raylet_and_workers_have_a_handler_that_goes():
    from ray._private.ray_logging import global_worker_stdstream_dispatcher as streams
    from ray._private.ray_logging import stdout_deduplicator

    streams.add_handler(ray_internals.STREAM_HANDLER, print)
    ray_internals.quieten_raylet()
    said = {"lines": ["Raylet is terminated. Possible", "something else"], "ip": "", "pid": "raylet", "job": None}
    assert [line for batch in stdout_deduplicator.deduplicate(said) for line in batch["lines"]] == ["something else"]
    assert ray_internals.STREAM_HANDLER not in {name for name, _ in streams.handlers}


def test_a_placement_group_is_found_by_the_name_of_its_id():
    name = "ab" * 18
    assert ray_internals.placement_group_of(name).id.hex() == name


def test_the_coordinator_of_elastic_training_is_made_by_a_function_of_rays_data():
    from ray.data._internal.cluster_autoscaler import default_autoscaling_coordinator

    assert callable(default_autoscaling_coordinator.get_or_create_autoscaling_coordinator)


def test_the_command_of_ray_is_a_module():
    assert find_spec(ray_internals.COMMANDS) is not None


def test_the_variable_of_submitted_jobs_is_the_one_that_ray_sets():
    from ray._private.runtime_env import constants

    assert ray_internals.JOB_VARIABLE == constants.RAY_JOB_CONFIG_JSON_ENV_VAR


def test_the_description_lies_where_ray_up_puts_it():
    from ray.tune.execution import cluster_info

    assert f'"{ray_internals.DESCRIPTION}"' in inspect.getsource(cluster_info)


@pytest.mark.parametrize("has_process_group", [True, False])
def test_a_trainer_has_all_that_rays_own_has_but_what_serves_datasets(has_process_group):
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    trainer = ray_internals.trainer(has_process_group)(print)
    assert isinstance(trainer, DataParallelTrainer)
    assert any("Torch" in kind.__name__ for kind in type(trainer).__mro__) == has_process_group
    plain = DataParallelTrainer._create_default_callbacks(trainer)
    left_out = {type(one) for one in plain} - {type(one) for one in trainer._create_default_callbacks()}
    assert [kind.__module__ for kind in left_out] == ["ray.train.v2._internal.callbacks.datasets"]
    own = inspect.getsource(DataParallelTrainer._initialize_and_run_controller)
    assert "controller_actor_cls.remote(**controller_init_kwargs)" in own and "controller.run.remote()" in own


def test_nothing_is_joined_unasked_where_ray_was_left(monkeypatch):
    from ray._private import auto_init_hook

    monkeypatch.setattr(auto_init_hook, "enable_auto_connect", True)  # and as it was after the test
    ray_internals.start_nothing_unasked()
    auto_init_hook.auto_init_ray()
    assert not auto_init_hook.enable_auto_connect


def test_the_node_of_this_process_has_a_socket_and_its_processes_by_name():
    from ray._private import node, worker

    assert isinstance(node.Node.raylet_socket_name, property)
    assert "node" in vars(worker.global_worker)
    assert "self.all_processes:" in inspect.getsource(node.Node.__init__)
