"""The options of tools that draw their models at random, and where they keep those that fail."""
import pathlib


def add_options(parser, kinds, count, per):
    """--seed, --count (so many `per` each), a glob called --KINDS, --keep."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=count, help=per)
    parser.add_argument(f"--{kinds}", default="*", help="a shell pattern: of these alone")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="save models that fail there")


def kept(folder):
    """The folder of --keep, which is there now."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder
