# Tables as people have them: from spreadsheets, with headers, texts, gaps and columns that no model
# knows; and what comes out, as Python's csv module reads it.
load helper

houses() { # a table as a spreadsheet has it, with a quote, a comma, a line end and a gap in it
    cat >houses.csv <<'EOT'
id,town,rooms,garden,year,area
007,"Aix, la ""belle""",3,TRUE,1999,71.5
008,"Münster
(Westfalen)",4.0,false,2001,
009,,2,1,2020,1e2
EOT
}

# What they give, an own line for each row.
PRICED='id,where,twice,paved,since,score.yes,"score.no, never"
007,"Aix, la ""belle""",6,0,1999,71.5,-71.5
008,"Münster
(Westfalen)",8,1,2001,nan,nan
009,"",4,0,2020,100,-100'

# The rows of a CSV file as Python reads them, one per line.
python_rows() {
    python3 -c 'import csv, sys
for row in csv.reader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True): print(row)' "$1"
}

pieces() { # pieces SIZE FILE: to standard output, so many bytes at a time
    python3 - "$@" <<'PY'
import os, sys
data = open(sys.argv[2], "rb").read()
for at in range(0, len(data), int(sys.argv[1])):
    os.write(1, data[at:at + int(sys.argv[1])])
PY
}

@test "a header that names inputs feeds each column to its input, as the type that it declares" {
    houses
    works ort-run "$FX/house.onnx" houses.csv --id id -o out.csv
    [ "$(cat out.csv)" = "$PRICED" ]
    works ort-run "$FX/house.onnx" houses.csv --drop id -o out.npz
    works ort-tensor out.npz --print
    has "where: string 3x1" "twice: int64 3x1" "paved: bool 3x1" "since: int64 3"
}

@test "what a table gives is read by Python's csv module as it was meant" {
    houses
    works ort-run "$FX/house.onnx" houses.csv --id id -o out.csv
    run python_rows out.csv
    [ "${lines[0]}" = "['id', 'where', 'twice', 'paved', 'since', 'score.yes', 'score.no, never']" ]
    [ "${lines[1]}" = "['007', 'Aix, la \"belle\"', '6', '0', '1999', '71.5', '-71.5']" ]
    [ "${lines[2]}" = "['008', 'Münster\\n(Westfalen)', '8', '1', '2001', 'nan', 'nan']" ]
    [ "${lines[3]}" = "['009', '', '4', '0', '2020', '100', '-100']" ]
    [ "${#lines[@]}" -eq 4 ]
}

@test "semicolons, tabs, line ends, byte order marks and UTF-16 of spreadsheets mean the same table" {
    houses
    python3 - <<'PY'
text = open("houses.csv", encoding="utf-8").read()
def separated(by): return text.replace(",", by).replace("Aix" + by, "Aix,")
def put(name, data): open(name + ".csv", "wb").write(data)
put("semicolons", separated(";").encode())
put("tabs", separated("\t").encode())
put("crlf", text.replace("\n", "\r\n").replace("Münster\r\n", "Münster\n").encode())
put("cr", text.replace("\n", "\r").replace("Münster\r", "Münster\n").encode())
put("marked", b"\xef\xbb\xbf" + text.encode())
put("excel", separated("\t").encode("utf-16-le").join([b"\xff\xfe", b""]))
put("big", b"\xfe\xff" + text.encode("utf-16-be"))
put("gaps", ("\n\n" + text.replace("\n007", "\n\n007").rstrip("\n")).encode())
PY
    for name in semicolons tabs crlf cr marked excel big gaps; do
        works ort-run "$FX/house.onnx" $name.csv --id id -o out.csv
        [ "$(cat out.csv)" = "$PRICED" ] || { echo "$name: $(cat out.csv)"; return 1; }
        output=$(pieces 7 $name.csv | ort-run "$FX/house.onnx" - --id id --format csv)
        [ "$output" = "$PRICED" ] || { echo "$name by a pipe: $output"; return 1; }
    done
    # beyond the basic plane, and as .txt, which is what the spreadsheet calls it
    python3 -c 'open("t.txt", "wb").write("id\ttown\n1\t\U0001f3e0 x\n".encode("utf-16"))'
    works ort-tensor t.txt --from csv --id 1 --format csv -o -
    [ "$output" = $'id,town\n1,🏠 x' ]
}

@test "a table through a pipe is known by a header with inputs, else by --from csv" {
    houses
    works sh -c "cat houses.csv | ort-run $FX/house.onnx - --id 1 --format csv -o -"
    [ "$output" = "$PRICED" ]
    fails 5 "neither content nor name" sh -c "tail -n 1 houses.csv | ort-run $FX/house.onnx -"
    works sh -c "tail -n 1 houses.csv | ort-run $FX/house.onnx - --from csv --id 1 --format csv -o -"
    [ "${lines[0]}" = 'column1,where,twice,paved,since,score.yes,"score.no, never"' ]
    [ "${lines[1]}" = '009,"",4,0,2020,100,-100' ]
    fails 2 "--from: 'raw' is none of" ort-run "$FX/house.onnx" houses.csv --from raw
}

@test "--id passes columns through unchanged, into CSV, JSON, arrays and from tool to tool" {
    houses
    works ort-run "$FX/house.onnx" houses.csv --id id --plain --format json -o -
    has '"id": ["007", "008", "009"], "where"'
    works ort-run "$FX/house.onnx" houses.csv --id 1 -o out.npz
    works ort-tensor out.npz --format csv -o -
    [ "$output" = "$PRICED" ]
    printf 'name,p,q,note\n a b ,1,2,x\n"c,d",3,4,y\n' >t.csv
    works sh -c "ort-tensor t.csv --id name --drop note --scale 2 | ort-tensor --format csv -o -"
    [ "$output" = $'name,arr_0[0],arr_0[1]\n a b ,2,4\n"c,d",6,8' ]
    works ort-tensor t.csv t.csv --id name,note --stack --print
    has 'name: string 4' '" a b " "c,d" " a b " "c,d"' 'note: string 4'
    printf 'b,key,a[0],a[1]\n1,x,2,3\n' >u.csv
    works sh -c "ort-run $FX/two.onnx u.csv --id key -o out=- --format csv"
    [ "$output" = $'key,out[0],out[1],out[2]\nx,2,3,1' ]
}

@test "tables called .tsv, or by --format tsv, have tabs" {
    houses
    works ort-run "$FX/house.onnx" houses.csv --id id -o out.tsv
    run python3 -c 'import csv; print(list(csv.reader(open("out.tsv", newline=""), "excel-tab"))[1])'
    [ "$output" = "['007', 'Aix, la \"belle\"', '6', '0', '1999', '71.5', '-71.5']" ]
    works sh -c "ort-run $FX/house.onnx houses.csv --id id --format tsv -o - | cmp - out.tsv"
    works ort-tensor out.tsv --id 1 --drop where --print
    has 'id: string 3' 'float 3x5'
    works sh -c "printf '1,2\n' | ort-tensor --from csv --format tsv -o -"
    [ "$output" = $'1\t2' ]
}

@test "several tables are several runs, whose rows go on under one header" {
    houses
    head -n 1 houses.csv >more.csv
    tail -n 1 houses.csv >>more.csv
    local want="$PRICED"$'\n''009,"",4,0,2020,100,-100'
    works ort-run "$FX/house.onnx" houses.csv more.csv --id id -o out.csv
    [ "$(cat out.csv)" = "$want" ]
    works ort-run "$FX/house.onnx" --stream houses.csv more.csv --id id --format csv -o -
    [ "$output" = "$want" ]
    works ort-run "$FX/house.onnx" houses.csv more.csv --id id --names -o out.csv
    run python_rows out.csv
    [ "${lines[0]}" = "['file', 'id', 'where', 'twice', 'paved', 'since', 'score.yes', 'score.no, never']" ]
    [ "${lines[4]}" = "['more.csv', '009', '', '4', '0', '2020', '100', '-100']" ]
    works ort-run "$FX/house.onnx" houses.csv more.csv --id id -o out.json
    works ort-tensor out.json --print
    has "where.0001" '"007" "008" "009" "009"'
}

@test "arrays of all inputs in several files are several runs, too: none is lost" {
    cp "$FX/xy.npz" first.npz
    works ort-tensor "$FX/xy.npz" --scale 2 -o second.npz
    works ort-run "$FX/add.onnx" first.npz second.npz -o out.npy
    works ort-tensor out.npy --print
    has 2x2x3
    works ort-run "$FX/add.onnx" "$FX/x.npy" "$FX/y.npy" -o one.npy # a file for each input
    works ort-tensor out.npy --slice 0 -o got.npy
    same one.npy got.npy
    fails 5 "holds 2 values, one can be stacked" \
        ort-run "$FX/batch.onnx" "$FX/xy.npz" "$FX/xy.npz" --stack -o out2.npy
}

@test "columns that no input wants are refused, with the command that mends it" {
    houses
    fails 5 "houses.csv: column 'id': no input of the model, which has 'town', 'rooms', 'garden', 'year', 'area'; --drop id leaves it out" \
        ort-run "$FX/house.onnx" houses.csv -o out.csv
    sed 's/rooms/Rooms/' houses.csv >t.csv
    fails 5 "columns 'id', 'Rooms'.*--drop id,Rooms leaves them out" ort-run "$FX/house.onnx" t.csv
    sed '1s/.*/ID,Town,Rooms,Garden,Year,Area/' houses.csv >t.csv
    fails 5 "the header names no input of the model, which has 'town'.*'Town', 'Rooms'" \
        ort-run "$FX/house.onnx" t.csv --drop ID
    sed '1s/id,/,/' houses.csv >t.csv # the index of a data frame
    fails 5 "column number 1, which has no name: .*--drop 1 leaves" ort-run "$FX/house.onnx" t.csv
    works ort-run "$FX/house.onnx" t.csv --drop 1 -o out.csv
    fails 2 "no column 'x'; it has 'id', 'town'" ort-run "$FX/house.onnx" houses.csv --id x
    fails 2 "no column '7'" ort-run "$FX/house.onnx" houses.csv --drop 7
    fails 2 "can't be passed through and dropped" ort-run "$FX/house.onnx" houses.csv --drop id --id 1
    fails 2 "columns .* of tables \(\.csv\) only" ort-run "$FX/chain.onnx" "$FX/x.npy" --id 1
    fails 2 "no table is read" ort-run "$FX/chain.onnx" --random 1 --drop 1
    fails 2 "\.npz, \.json and \.csv can" ort-run "$FX/house.onnx" houses.csv --id id -o where=out.npy
    sed '1s/id/where/' houses.csv >t.csv
    fails 2 "column 'where' has the name of an output" \
        ort-run "$FX/house.onnx" t.csv --id where -o out.csv
}

@test "a bad cell is named by line and column" {
    houses
    sed 's/4\.0/4.5/' houses.csv >t.csv
    fails 5 "t.csv: line 4, column 3 'rooms': '4.5' is no int64" \
        ort-run "$FX/house.onnx" t.csv --id id
    sed 's/,2,1,/,,1,/' houses.csv >t.csv
    fails 5 "line 5, column 3 'rooms': is empty, needs int64" ort-run "$FX/house.onnx" t.csv --id id
    sed 's/false/perhaps/' houses.csv >t.csv
    fails 5 "column 4 'garden': 'perhaps' is no bool" ort-run "$FX/house.onnx" t.csv --id id
    sed 's/71.5/N\/A/; s/1e2/99999999999999999999/' houses.csv >t.csv
    works ort-run "$FX/house.onnx" t.csv --id id -o out.csv
    sed 's/2020/99999999999999999999/' houses.csv >t.csv
    fails 5 "'99999999999999999999' is no int64" ort-run "$FX/house.onnx" t.csv --id id
    printf 'a;b;c\n1;2,5;3\n' >t.csv
    fails 5 "'2,5' is no float; decimal commas" ort-run "$FX/batch.onnx" t.csv
    printf 'a,b,c\n1,2,dog\n' >t.csv
    fails 5 "column 3 'c': 'dog' is no float; --drop" ort-run "$FX/batch.onnx" t.csv
    printf 'a,caf\xe9,c\n1,x,3\n' >t.csv
    fails 5 "not UTF-8; save the table as" ort-tensor t.csv --id 2 --print
}

@test "broken and hostile tables end with one line and status 5" {
    printf 'a,b\n1,\0\n' >nul.csv
    printf 'a,b\n1,"2\n3,4\n' >open.csv
    printf 'a,b\n1,"2"x\n' >behind.csv
    printf 'a,b\n1,2\n\n1,2,3\n' >ragged.csv
    printf 'a,b,c\n' >header.csv
    : >empty.csv
    printf '\n\r\n' >blank.csv
    printf '\xff\xfea' >half.csv
    printf '\xff\xfea\0\0\xd8b\0' >lone.csv
    printf 'a,a,t\n1,2,x\n' >twins.csv
    python3 -c 'print(",".join(["1"] * 2000000) + "\n" + ",".join(["2"] * 2000000))' >wide.csv
    python3 -c 'print(",".join(f"a{i}" for i in range(200000)) + "\nx" + ",1" * 199999)' >mixed.csv
    fails 5 "nul.csv: line 2: a NUL byte" ort-run "$FX/batch.onnx" nul.csv
    fails 5 "open.csv: line 2: a quote is opened and never closed" ort-run "$FX/batch.onnx" open.csv
    fails 5 "line 2: text behind a closing quote" ort-run "$FX/batch.onnx" behind.csv
    fails 5 "line 4 has 3 cells, the first one has 2" ort-run "$FX/batch.onnx" ragged.csv
    fails 5 "a header and no row" ort-run "$FX/batch.onnx" header.csv
    fails 5 "is empty" ort-run "$FX/batch.onnx" empty.csv
    fails 5 "is empty" ort-run "$FX/batch.onnx" blank.csv
    fails 5 "byte 2: half a character" ort-run "$FX/batch.onnx" half.csv
    fails 5 "byte 4: 0xd800 is half of a pair" ort-run "$FX/batch.onnx" lone.csv
    fails 5 "column 2: 'a' is there twice" ort-tensor twins.csv
    fails 5 "float\[2,2000000\]" ort-run "$FX/batch.onnx" wide.csv
    fails 5 "200000 columns of numbers and of text" ort-tensor mixed.csv
    works ort-tensor wide.csv --print
    has 2x2000000
    run sh -c "yes 1,2,3 | head -n 100000 | ort-tensor --from csv --format csv -o - | head -n 1"
    [ "$output" = 1,2,3 ]
}

@test "rows of a table have the shape that the input declares" {
    printf '1,2,3,4\n5,6,7,8\n' >t.csv
    works ort-run "$FX/pixels.onnx" t.csv -o out.npy
    works ort-tensor out.npy --print
    has "float 2x1x2x2"
    works ort-run "$FX/pixels.onnx" -i x=t.csv -o out2.npy
    same out.npy out2.npy
    printf 'id,p,q,r,s\nu,1,2,3,4\nv,5,6,7,8\n' >t.csv
    works ort-run "$FX/pixels.onnx" -i x=t.csv --drop id -o out2.npy
    same out.npy out2.npy
    printf 'x[0],x[1],x[2],x[3]\n1,2,3,4\n5,6,7,8\n' >t.csv
    works ort-run "$FX/pixels.onnx" t.csv -o out2.npy
    same out.npy out2.npy
    printf '1,2,3\n4,5,6\n' >t.csv # no header: inputs in their order
    works sh -c "ort-run $FX/two.onnx t.csv --format csv -o -"
    [ "$output" = $'out[0],out[1],out[2],maps.7,maps.9\n1,2,3,1,2\n4,5,6,4,5' ]
    printf 'b,a[1],a[0]\n1,2,3\n' >t.csv
    fails 5 "column 2: 'a\[1\]' stands where 'a\[0\]' is due" ort-run "$FX/two.onnx" t.csv
    printf 'b,a[0],b\n1,2,3\n' >t.csv
    fails 5 "column 3: 'b' is there twice" ort-run "$FX/two.onnx" t.csv
}

@test "passengers of a spreadsheet are what the classifier's own set says" {
    need_models
    local model=$REAL/skl_titanic/model.onnx set=$REAL/skl_titanic/test_data_set_0
    printf 'name\tpclass\tsex\tage\tfare\tembarked\r\n"A, b"\ta\ta\t0.53279614\t0.5093808\ta\r\n' |
        python3 -c 'import sys; sys.stdout.buffer.write(sys.stdin.read().encode("utf-16"))' >one.csv
    works ort-run "$model" one.csv --drop name --expect "$set"
    has "output_label: all 1" "output_probability"
    cat >passengers.csv <<'EOT'
PassengerId,pclass,Name,sex,age,fare,embarked
1,3,"Braund, Mr. ""O.""",male,22,7.25,S
2,1,"Cumings, Mrs.",female,38,71.2833,C
3,3,Heikkinen,female,,7.925,S
EOT
    works ort-run "$model" passengers.csv --id PassengerId --drop Name -o out.csv
    run python_rows out.csv
    [ "${lines[0]}" = "['PassengerId', 'output_label', 'output_probability.0', 'output_probability.1']" ]
    [[ ${lines[1]} == "['1', '0', '0.905"* ]]
    [[ ${lines[2]} == "['2', '1', '0.067"* ]]
    [ "${#lines[@]}" -eq 4 ]
}
