# bash completion for hsnap, hdiff and hsym, from the options and commands in --help

_hsnap_complete()
{
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command=() words

	COMPREPLY=()
	# options of hsnap's command; without a command, those of snapshot
	if [[ ${program##*/} == hsnap* ]]; then
		command=(snapshot)
		[[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]] && command=("${COMP_WORDS[1]}")
	fi
	if [[ $word == -* ]]; then
		words=$("$program" "${command[@]}" --help 2>/dev/null | sed -n 's/^  .*\(--[a-z][a-z-]*\).*  .*/\1/p')
	elif [[ ${program##*/} == hsnap* && $COMP_CWORD -eq 1 ]]; then
		words=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _hsnap_complete hsnap hdiff hsym
