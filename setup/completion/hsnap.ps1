# PowerShell completion for hsnap, hdiff and hsym: their options and commands are those that --help lists. In $PROFILE:
#
#   . C:\Tools\hsnap\completion\hsnap.ps1
#
# This has never run, as there is no PowerShell where it was written; tests apply its patterns to --help.
Register-ArgumentCompleter -Native -CommandName hsnap, hsnap32, hdiff, hsym -ScriptBlock {
	param($word, $ast, $cursor)
	$program = $ast.GetCommandName()
	$before = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
	$command = @()
	if ($program -match 'hsnap[^\\/]*$' -and $word -like '-*') {
		# options are those of hsnap's command; without one, of a snapshot
		$command = @(if ($before.Count -gt 1 -and $before[1] -notlike '-*') { $before[1] } else { 'snapshot' })
	}
	if ($word -like '-*') {
		$pattern = '^  .*(--[a-z][a-z-]*).*  .*'
	} elseif ($program -match 'hsnap[^\\/]*$' -and $before.Count -eq 1) {
		$pattern = '^  ([a-z][a-z]*)  .*'
	} else {
		return
	}
	& $program @command --help 2>$null | Where-Object { $_ -cmatch $pattern } | ForEach-Object { $Matches[1] } |
		Where-Object { $_ -like "$word*" } | Sort-Object -Unique
}
