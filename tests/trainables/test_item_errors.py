"""Files of errors by test item: read as they were written, refused where they are none."""

import pytest

from trainables import item_errors
from trainables.errors import InputError
from trainables.item_errors import Item

ITEMS = (Item("b,2", "anna", 3.0, 40.0), Item('a "1"', "ben\nn", 0.1 + 0.2, 0.0))


def test_a_file_is_read_as_it_was_written_in_the_order_of_names(tmp_path):
    path = item_errors.write(ITEMS, tmp_path, "per@test")
    assert path.name == item_errors.file_name("per@test") == "items_per@test.csv"
    assert item_errors.read(path.read_text(encoding="utf-8"), str(path)) == tuple(sorted(ITEMS))


HEAD = "item,group,errors,length\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file must begin with the line item,group,errors,length"),
        ("item,errors\n", "the file must begin with"),
        (HEAD, "the file must have an item of some length"),
        (f"{HEAD}a,g,1,0\n", "the file must have an item of some length"),
        (f"{HEAD}a,g,1\n", "the file, line 2: expected item,group,errors,length"),
        (f"{HEAD}a,g,1,2\na,g,1,2\n", "the file, line 3: 'a' stands there twice"),
        (f"{HEAD}a,g,nan,2\n", "the file, line 2: errors must be a number"),
        (f"{HEAD}a,g,inf,2\n", "the file, line 2: errors must be a number"),
        (f"{HEAD}a,g,1,-2\n", "the file, line 2: errors must be a number"),
        (f"{HEAD}a,g,1,1e300\n", "the file, line 2: errors must be a number"),
        (f"{HEAD}a,g,one,2\n", "the file, line 2: expected item,group,errors,length"),
    ],
)
def test_what_is_no_such_file_is_refused_in_one_sentence(text, told):
    with pytest.raises(InputError) as caught:
        item_errors.read(text, "the file")
    assert str(caught.value).startswith(told) and "\n" not in str(caught.value)
