# statuses.sh - what tests/providers/on_device.c exits with when a call of its device's library fails. For sh and bash.

# of_faulty MODE N: with the N-th call of tests/providers/faulty.c. 4: nothing is opened. 0: a plan and a frame that are
# made ahead of a session's first run, which makes them again (pairs of calls of plan and frame); and the last calls, of
# a session whose only run is refused. 1: a check of the program sees it.
of_faulty() {
    case $1:$2 in
        *:1) echo 4 ;;
        FAULTY_AT:1[2356] | FAULTY_AT:7[01] | FAULTY_AT:9[89] | FAULTY_AT:11[56] | *:12[0-3]) echo 0 ;;
        *) echo 1 ;;
    esac
}

# of_fault LOG: with a call of tests/providers/fake_opencl.c, or of faulty.c, in any number of threads: by what the program
# said, which is the call that failed, what of the program was running in that thread, and whether that told. "wrong":
# nobody told who should have.
of_fault() {
    line=$(grep ' failed in ' "$1" | head -n 1)
    case $line in
        # A device that can't be opened leaves a session to the host, and a run goes on there: later checks see it.
        *' failed in ort_session_load('*': told later' | *' failed in ort_binding_run('*': told later') echo 1 ;;
        # A limit that the device didn't tell the first thread is missed by the others.
        clGetDeviceInfo' failed in !pthread_create('*': told later') echo 1 ;;
        *': told later') echo wrong ;;
        *': told') echo 1 ;;
        # What a device says of itself, and the times of what it did, may be missing. A plan and a frame that were made
        # ahead are made again. Waiting for a frame that is freed.
        clGet*' failed in '*': passed over' | *' failed in ort_session_load('*': passed over') echo 0 ;;
        clFinish' failed in ort_value_to_host('* | clFinish' failed in ort_binding_new('*) echo 0 ;;
        *': passed over') echo wrong ;;
        *) if grep -q "^provider '[a-z]*': " "$1"; then echo 4; else echo 0; fi ;;
    esac
}
