"""Texts that a careless program would run, cut, mangle or stumble over."""

PLANES = "".join(chr(plane << 16 | 0x1234) for plane in range(17))
"""One character of each Unicode plane, assigned or not."""

HOSTILE_TEXTS = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "'); DROP TABLE comparisons; --",
    "%s %(x)s {x} :name ? $1 \\N \\. \\x00",
    "\x1b[2J\x1b]0;title\x07\r\x08",
    "tab\tline\nreturn\rfeed\x0cseparator\x1f\x7f\x85\u2028",
    PLANES,
    "\ufeff\u202eright to left\ufffe\uffff",
    "e\u0301 differs from \u00e9",
    "",
    " \n ",
    "\U0001f44d\U0001f3fd" * 1000,
    "a\u0304" * 500_000,
]
