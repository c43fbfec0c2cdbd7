#!/bin/sh
# run_recipes.sh - the recipes for more than one machine (check_recipes.py); that of Dask where its packages can be had.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$root/build/venv-recipes/bin/python
sh "$root/tests/tools/packages.sh" build recipes || echo "run_recipes: some packages are missing" >&2
"$root/tests/tools/setup_venv.sh" --recipes
case $? in
0) ;;
3) python= ;;
*) exit 1 ;;
esac
exec python3 "$root/tests/tools/check_recipes.py" "$root/build/bin" ${python:+"$python"}
