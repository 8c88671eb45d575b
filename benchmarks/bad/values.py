"""What nobody should type, set or leave lying around, and some of what one may."""

from typing import Final

from hypothesis import strategies as st

LONG: Final = "x" * 300
NUMBERS: Final = (
    "0", "-1", "nan", "inf", "-inf", "1e400", "1.5", "", " ", "0x10", "1_000", "٣", "99999999999999999999", "9" * 5000,
)  # fmt: skip
TEXTS: Final = (
    "", " ", ".", "..", "../x", "/", "x y/../z", "a\nb", "\t", "\x1b[2J", "--", "-1", "%s", "{0}", "[bold]", "$(id)",
    "'", '"', "\\", "é", "\u202e", "a\u2066b", "\udcff", "a\udc80b", LONG, "y" * 5000, "y " * 35_000, "null", "true",
    "[]", "{}", "=1+1",
)  # fmt: skip
PLACES: Final = (
    "/nonexistent-ponderay", "/nonexistent-ponderay/deep/runs", "/dev/null/x", "/proc/x", "/sys/x", "/etc/passwd",
    "a-file", "a-file/runs", "loop", LONG, "x/" * 3000, "\udcff", "a\nb", "read/../../../../../../../dev/null",
)  # fmt: skip
SWEEPS: Final = (
    "asr.demo", "asr.demo.smoke", "toy.py:toy", "asr.demmo", "asr.", ".demo", "toy.py", "toy.py:nothing", "toy.py:",
    "no.py:x", ":", "a:b", "os:path", "json:loads", "toy.py:toy:toy", "/etc/passwd:x", "broken.py:x", "raising.py:x",
    "leaving.py:x", "folder.py:x", "number.py:x", "loud.py", "loud.py:loud",
    "loud.py:nothing", "a-file", "asr.demo:asr.demo", "asr/demo",
)  # fmt: skip
GOOD_SWEEPS: Final = ("asr.demo", "asr.demo.smoke", "toy.py:toy", "loud.py:loud")
BAD_SWEEPS: Final = tuple(one for one in SWEEPS if one not in GOOD_SWEEPS)
SETTINGS: Final = (
    "runs=", "=", "a", "a=b", "seed=3", "training.num_epochs=nan", "training.num_epochs=1e400", "training=3",
    "training.num_epochs=" + "9" * 5000, "training.num_epochs=" + "[" * 9000, "training.num_epochs=" + "1" * 30_000,
    "training.num_epochs=" + "{\"a\":" * 5000, "training.=1", ".=1", "training..num_epochs=1", "controller={}",
    "controller.kind=nobody", "api_key=sesame12345", "ar.password=sesame12345",
    "data.root=/nonexistent-ponderay", "width=3", "width=x", "width=" + "8" * 400,
)  # fmt: skip
RESOURCES: Final = (
    "num_workers=1e400", "num_workers=-1", "num_workers=2:1", "num_workers=1:99999999999", "cpus_per_worker=nan",
    "cpus_per_worker=999999999999", "gpus_per_worker=inf", "gpus_per_worker=nan", "gpus_per_worker=-0.5",
    "report_timeout_s=0", "report_timeout_s=1e400", "nothing=1", "=", "num_workers",
)  # fmt: skip
ADDRESSES: Final = (
    "foo", "http://", "http://127.0.0.1:9", "http://127.0.0.1:99999", "http://[::1", "http://\udcff", "ftp://x", "",
    "http://a b", "postgresql://u:p@127.0.0.1:9/x", "mysql://127.0.0.1:9/x", "sqlite://", "sqlite:////dev/null/x.db",
    "sqlite:////nonexistent-ponderay/x.db", "nonsense://somewhere", "https://" + LONG,
)  # fmt: skip
HOSTS: Final = ("", "256.1.1.1", "no such host", "-", "::g", "a" * 70 + ".example", "é.é", "1.2.3.4", "\udcff")
VARIABLES: Final = {
    "PONDERAY_RUNS": PLACES,
    "PONDERAY_CACHE": PLACES,
    "PONDERAY_DATA": (*PLACES, ""),
    "PONDERAY_STORAGE": ("foo", "s3://", "s3://user:key@b/x", "a::b://c", "s3://b?x=1", "file:///dev/null/x", "\udcff"),
    "PONDERAY_TRACKING_URI": ADDRESSES,
    "PONDERAY_SEARCH_URI": ("foo", "sqlite:", "http://x", "postgresql://h:99999/x", "\udcff", "a\nb"),
    "PONDERAY_PRICE_PER_DEVICE_HOUR": NUMBERS,
    "PONDERAY_WATTS_PER_DEVICE": NUMBERS,
    "PONDERAY_UNKNOWN": TEXTS,
    "COLUMNS": ("0", "-5", "x", "1", "99999999"),
    "TERM": ("", "dumb", "\udcff"),
    "NO_COLOR": ("1",),
    "LC_ALL": ("C", "xx_YY"),
    "TZ": ("nowhere/at/all",),
}
"""Bad values by variable; a part of them changes nothing, and the answer must be right."""

JUNK: Final = ("", "   ", ".", "a-file", "/dev/null/x", "not a number", "-1", "\udcff", "a\nb", "x" * 5000)
"""What no variable should hold: a folder for a file, a file for a folder, no number, no UTF-8."""

FILES: Final = (
    b"runs = 5", b"runs = [", b"\xff\xfe\x00", b"runs = 'a\\u0000b'", b'runs = "a\\u0000b"', b"runs = true",
    b"nothing = 1", b"[runs]\nx = 1", b'price_per_device_hour = "x"', b"price_per_device_hour = nan",
    b"watts_per_device = " + b"9" * 5000, b"a = " + b"[" * 5000, b'runs = "/dev/null/x"', b'search_uri = "foo"',
    b'tracking_uri = ["x"]', b"#" * 1_100_000, b'runs = ""', b"", b"data = 7", b'storage = "foo"', b'cache = "/proc/x"',
)  # fmt: skip
"""Contents of `ponderay.toml`."""


STORES: Final = (
    "nothing", "study", "garbage", "empty file", "cut", "folder", "no tables", "runs is full of folders", "bad cache",
    "bad journal", "bad optuna",
)  # fmt: skip
"""States of the runs folder, made by `places`."""


def texts() -> st.SearchStrategy[str]:
    """Anything that can stand in a command line, which knows no NUL."""
    drawn = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
    odd = st.binary(min_size=1, max_size=20).filter(lambda raw: b"\0" not in raw)
    decoded = odd.map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    listed = st.sampled_from((*TEXTS, *NUMBERS))
    return st.one_of(listed, listed, listed, drawn, drawn, decoded)
