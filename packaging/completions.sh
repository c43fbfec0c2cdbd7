#!/bin/sh
# completions.sh SHELL TOOL < TABLE: completions of a tool for bash, zsh or fish, from what `TOOL --help=table`
# prints, so that a new option completes by being in the tool's table.
#
# Words are completed where the row lists them (choices), pass names by asking the tool, files where the
# argument is one; other arguments are left to the user.
set -eu
shell=$1 tool=$2
exec awk -F '\t' -v shell="$shell" -v tool="$tool" '
NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}
function field(name) { return column[name] && $column[name] != "-" ? $column[name] : "" }
function files(text) { return text ~ /FILE|DIR|MODEL|LIB\.so/ }
function passes(text) { return text == "PASS" || name == "passes" }
function escaped(text) { gsub(/[\]\[:]/, "\\\\&", text); return text }
{
    name = field("name"); letter = field("letter"); doc = field("doc"); argument = field("argument")
    choices = field("choices")
    gsub(/\|/, " ", choices)
    maybe = argument ~ /^\[=/
    if (name == "isa" && match(doc, /: [a-z0-9, ]+/)) { # "kernel tier: scalar, avx2 (ORT_ISA)"
        choices = substr(doc, RSTART + 2, RLENGTH - 2)
        gsub(/,/, "", choices)
        sub(/ +$/, "", choices)
    }
    if (shell == "bash")
        bash_row()
    else if (shell == "zsh")
        zsh_row()
    else
        fish_row()
}
function bash_row(    keys) {
    options = options " --" name (letter ? " -" letter : "")
    if (argument == "" || maybe)
        return
    keys = "--" name (letter ? "|-" letter : "")
    if (choices)
        cases = cases "    " keys ") COMPREPLY=($(compgen -W \"" choices "\" -- \"$cur\")); return ;;\n"
    else if (passes(argument))
        cases = cases "    " keys ") COMPREPLY=($(compgen -W \"$(ort-optimize --list-passes 2>/dev/null |\n" \
            "        awk \"/^[0-9]/ {print \\$2}\")\" -- \"$cur\")); return ;;\n"
    else if (!files(argument))
        others = others "|" keys
}
function zsh_row(    spec, action) {
    gsub(/\x27/, "\x27\\\x27\x27", doc)
    doc = escaped(doc)
    if (argument) {
        action = choices ? "(" choices ")" : \
            argument ~ /^\[NAME=\]/ ? "{compset -P \"*=\"; _files}" : files(argument) ? "_files" : \
            passes(argument) ? "($(ort-optimize --list-passes 2>/dev/null | awk \"/^[0-9]/ {print \\$2}\"))" : " "
        spec = (maybe ? "::" : ":") escaped(argument) ":" action
    }
    lines = lines " \\\n    \x27*--" name (argument ? maybe ? "=-" : "=" : "") "[" doc "]" spec "\x27"
    if (letter)
        lines = lines " \\\n    \x27*-" letter (argument ? "+" : "") "[" doc "]" spec "\x27"
}
function fish_row(    how) {
    gsub(/\x27/, "\\\x27", doc)
    if (choices && !maybe)
        how = " -x -a \x27" choices "\x27"
    else if (passes(argument))
        how = " -x -a \x27(ort-optimize --list-passes 2>/dev/null | string match -rg \"^[0-9] +(\\S+)\")\x27"
    else if (argument != "" && !maybe)
        how = files(argument) ? " -r -F" : " -x"
    print "complete -c " tool (letter ? " -s " letter : "") " -l " name how " -d \x27" doc "\x27"
}
END {
    if (!NR)
        exit 1
    fn = "_" tool
    gsub(/-/, "_", fn)
    if (shell == "bash") {
        print "# bash completion for " tool
        print fn "() {\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
        print "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi"
        print "    COMPREPLY=()\n    case $prev in"
        printf "%s", cases
        if (others)
            print "    " substr(others, 2) ") return ;;"
        print "    esac\n    [[ $cur != -* ]] || COMPREPLY=($(compgen -W \"" substr(options, 2) " --help --version\" -- \"$cur\"))"
        print "}\ncomplete -o bashdefault -o default -F " fn " " tool
    } else if (shell == "zsh") {
        print "#compdef " tool "\n_arguments -s -S" lines " \\\n    \x27(- *)\x27{-h,--help}\x27[show the help]\x27 \\"
        print "    \x27(- *)--version[show the version]\x27 \\\n    \x27*:file:_files\x27"
    } else {
        print "complete -c " tool " -s h -l help -d \x27show the help\x27"
        print "complete -c " tool " -l version -d \x27show the version\x27"
    }
}'
