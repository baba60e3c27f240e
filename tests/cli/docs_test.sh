#!/usr/bin/env bash
# docs_test.sh BINARY SOURCE_DIR [--update]: runs every command that README.md and docs/*.md show and compares what it
# prints. In a ```console block a line that begins with "$ " is a command and what follows is its output, standard
# error included; a ```yaml NAME block is saved as NAME first. Commands run in a folder with data/, docs/ and ./run.
# With --update the files get what the commands print now; read the difference before you commit it.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1") source_dir=$(readlink -f "$2") update=${3:-}
[[ -x $binary ]] || { echo "no such binary: $1" >&2; exit 3; }
suite=Docs
export LC_ALL=C
export PORTOLAN_DATA=data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/place"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$binary" >"$work/place/run"
chmod +x "$work/place/run"
ln -s "$work/place/run" "$work/bin/portolan"
ln -s "$source_dir/data" "$source_dir/docs" "$work/place"
ln -s "$(dirname "$binary")" "$work/place/build"

# Runs one command in the folder and prints what it says.
run_shown() { (cd "$work/place" && PATH="$work/bin:$PATH" timeout 120 bash -c "$1" 2>&1 </dev/null); }

# check_file FILE: the commands of one file. Writes the refreshed file to $work/fresh.
check_file() {
  local file=$1 state=text command="" expected="" actual="" saved="" line number=0 at=0
  : >"$work/fresh"
  compare() {
    [[ -n $command ]] || return 0
    begin "${file//[^a-zA-Z0-9]/_}_line_$at"
    actual=$(run_shown "$command")
    [[ -z $actual ]] || printf '%s\n' "$actual" >>"$work/fresh"
    if [[ $actual != "${expected%$'\n'}" ]]; then
      fail "$file:$at: '$command' prints something else now (< shown, > printed); to take it over:" \
        "bash tests/cli/docs_test.sh build/portolan . --update"
      diff <(printf '%s' "$expected") <(printf '%s\n' "$actual") | head -n 20 >&2
    fi
    end
    command="" expected=""
  }
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    case $state in
      text)
        printf '%s\n' "$line" >>"$work/fresh"
        if [[ $line == '```console' ]]; then state=console; fi
        if [[ $line =~ ^'```yaml '([A-Za-z0-9_./-]+)$ ]]; then
          state=save
          saved="$work/place/${BASH_REMATCH[1]}"
          mkdir -p "$(dirname "$saved")"
          : >"$saved"
        fi
        ;;
      save)
        printf '%s\n' "$line" >>"$work/fresh"
        if [[ $line == '```' ]]; then state=text; else printf '%s\n' "$line" >>"$saved"; fi
        ;;
      console)
        if [[ $line == '```' || $line == '$ '* ]]; then
          compare
          printf '%s\n' "$line" >>"$work/fresh"
          at=$number
          if [[ $line == '```' ]]; then state=text; else command=${line#'$ '}; fi
        elif [[ $command == *\\ && -z $expected ]]; then
          printf '%s\n' "$line" >>"$work/fresh"
          command+=$'\n'$line
        else
          expected+=$line$'\n'
        fi
        ;;
    esac
  done <"$source_dir/$file"
}

cd "$source_dir" || exit 1
for file in README.md docs/*.md; do
  check_file "$file"
  if [[ $update == --update ]] && ! cmp -s "$work/fresh" "$file"; then
    cp "$work/fresh" "$file"
    echo "updated $file"
  fi
done

# Every link to a file of this repository leads somewhere.
begin links
while IFS=: read -r file target; do
  [[ -e $(dirname "$file")/$target ]] || fail "$file links to $target, which does not exist"
done < <(grep -oHE '\]\([^)#:]+[)#]' README.md CONTRIBUTING.md docs/*.md | sed -E 's/\]\(([^)#]*)[)#]$/\1/')
end

finish docs
