"""Random keys in notebooks."""

from html import unescape

from primax_numpy import random


def test_keys_show_their_type_and_numbers():
    key = random.key(7)
    text = unescape(key._repr_html_())
    assert "<b>key<fry>[]</b> · 8 bytes" in text.replace("&middot;", "·")
    assert "[0 7]" in text
    assert "<b>key<fry>[3]</b>" in unescape(random.split(key, 3)._repr_html_())
