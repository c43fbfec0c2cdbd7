# Lines of a program for OpenCL as strings of C, without comments and indentation, which each tool
# would carry: a line stays a line, so that what compilers say has the number it has in the file.
{
    line = ""
    for (rest = $0; rest != ""; rest = at ? substr(rest, at + 2) : "") {
        at = index(rest, inside ? "*/" : "/*")
        if (!inside)
            line = line (at ? substr(rest, 1, at - 1) : rest)
        if (at)
            inside = !inside
    }
    sub(/^[ \t]+/, "", line)
    sub(/[ \t]+\\$/, " \\", line)
    sub(/[ \t]+$/, "", line)
    gsub(/[\\"]/, "\\\\&", line)
    print "\"" line "\\n\""
}
