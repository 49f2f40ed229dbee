# PowerShell completion for hsnap, hdiff and hsym, from the options and commands in --help. In
# $PROFILE:
#
#   . C:\Tools\hsnap\completion\hsnap.ps1
#
# This script has never run, because no PowerShell was available; tests apply its patterns to
# --help.
Register-ArgumentCompleter -Native -CommandName hsnap, hsnap32, hdiff, hsym -ScriptBlock {
	param($word, $ast, $cursor)
	$program = $ast.GetCommandName()
	$before = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
	$command = @()
	if ($program -match 'hsnap[^\\/]*$' -and $word -like '-*') {
		# options of hsnap's command; without a command, those of snapshot
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
