#!/bin/sh
# nvidia-smi of a lab host: answers from the files beside it that tests.lab.smi writes.
# Each start leaves its arguments as a line in "starts".
d=${0%/*}/../smi
printf '%s\n' "$*" >> "$d/starts"

kind=table fields= format= ids= sections=u detail= xml=
while [ $# -gt 0 ]; do
    case $1 in
        --query-gpu=*) kind=query-gpu fields=${1#*=} ;;
        --query-compute-apps=*) kind=query-compute-apps fields=${1#*=} ;;
        --format=*) format=${1#*=} ;;
        --id=* | -i=*) ids=${1#*=} ;;
        -i | --id) ids=${2-}; shift ;;
        -L | --list-gpus) kind=list ;;
        -q | --query) detail=1 ;;
        -x | --xml-format) xml=1 ;;
        -qx | -xq) detail=1 xml=1 ;;
        --help-query-gpu) kind=help ;;
        pmon) kind=pmon ;;
        -s) sections=${2-}; shift ;;
        -c | -d | -o) shift ;;
        *) kind=invalid ;;
    esac
    [ $# -eq 0 ] || shift
done
case $kind,$detail,$xml,$format in
    table,1,1,*) kind=xml ;;
    table,,,) ;;
    table,*) kind=invalid ;;
    query-*,,,csv | query-*,,,csv,*) ;;
    query-*) kind=invalid ;;
esac

csv() {
    now=
    case $fields in *timestamp*) now=$(date +'%Y/%m/%d %H:%M:%S.000') ;; esac
    awk -v fields="$fields" -v format="$format" -v ids="$ids" -v now="$now" -v table="$1" \
        -f "$d/csv.awk" "$d/$1"
}

answer() {
    case $kind in
        query-gpu) csv gpus ;;
        query-compute-apps) csv apps ;;
        pmon) awk -v sections="$sections" -v ids="$ids" -f "$d/pmon.awk" "$d/gpus" "$d/apps" ;;
        invalid)
            echo "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."
            return 1 ;;
        *) cat "$d/$kind" ;;
    esac
}

# Prints what it reads letter by letter, "$drip" seconds apart.
drip() {
    text=$(cat; echo .) text=${text%.}
    while [ -n "$text" ]; do
        rest=${text#?}
        printf %s "${text%"$rest"}"
        text=$rest
        sleep "$drip"
    done
}

delay= hang= said= flood= drip= status=
. "$d/fault.$kind"
[ -z "$delay" ] || sleep "$delay"
case $hang in
    term) exec sleep infinity ;;
    stuck) setsid sleep infinity & exec sleep infinity ;;
    kill) trap '' TERM INT HUP; exec sleep infinity ;;
esac
[ -z "$flood" ] || exec yes "$flood"
if [ -n "$said" ]; then
    cat "$d/said.$said.err" >&2
    cat "$d/said.$said.out" | if [ -n "$drip" ]; then drip; else cat; fi
    exit "$status"
fi
if [ -n "$drip" ]; then answer | drip; else answer; fi
