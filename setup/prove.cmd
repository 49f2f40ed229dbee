@echo off
rem prove.cmd: tests hsnap, hdiff and hsym on this machine with programs that state their own leaks, and
rem writes the results to prove.txt. Takes about two minutes, sends nothing anywhere, and needs no
rem administrator. For an administrator it also tests stacks recorded by Windows (+ust), for
rem leak_steady.exe only. Status 0: every possible test passed. 1: a test failed.
setlocal DisableDelayedExpansion
set HSYM_CACHE=off
set options=
set work=prove\work
set output=%work%\output.txt
set results=%work%\results.txt
if not "%~1"=="" goto %1_%2

pushd "%~dp0"
if exist prove\work rmdir /s /q prove\work
if exist prove\kept rmdir /s /q prove\kept
mkdir prove\work
>prove.txt echo prove.cmd: what came of it
if exist prove.txt if exist prove\work goto begin
popd
echo prove.cmd: cannot write here. Unpack the zip into a folder of your own, and start it there.
exit /b 2

rem A step of a sample: stepper.exe calls this file with a word, the step's number and the process id. Its
rem output goes to stepper.exe's output.
:none_1
:none_2
:none_3
:none_4
exit /b 0
:steps_1
:steps_2
:attach_2
:attach_3
.\hsnap.exe -v -p %3 -f %work%\%bits%-%dump%%2.txt %options%
goto judge_step
:steps_3
.\hsnap.exe -v --walk -p %3 -f %work%\%bits%-walk.txt
goto judge_step
:attach_1
.\hsnap.exe attach -v -p %3
goto judge_step
:attach_4
.\hsnap.exe detach -v -p %3
goto judge_step
:marks_1
:marks_2
.\hsnap.exe mark -p %3 step%2
:judge_step
call :judge 0 %errorlevel% "%bits% %1: step %2"
exit /b 0

:begin
echo.>%output%
echo.>%results%
for %%p in (hsnap hdiff hsym) do call :try 0 "%%p runs" .\%%p.exe --version
call :try 0 "doctor: the heaps of this Windows are read as they are" .\hsnap.exe doctor -v --keep prove\kept
for %%b in (x64 x86) do call :programs %%b
call :ust

ver >>prove.txt
>>prove.txt echo %OS% %PROCESSOR_ARCHITECTURE% %PROCESSOR_ARCHITEW6432%
if exist "%SystemRoot%\System32\winecfg.exe" >>prove.txt echo This is Wine, which proves nothing about Windows.
type %results% >>prove.txt
type %output% >>prove.txt
set status=0
if exist %work%\failed set status=1
echo.
echo The result is in prove.txt, in this folder. It names programs, DLLs and the folders that they are in, and with
echo them perhaps you: read it before you pass it on.
if exist prove\kept\machine.txt echo The folder prove\kept has memory of the doctor's own program, and no data of yours: it is of most use.
if %status%==1 echo Something FAILED. With prove.txt the folder prove\work is of use, which has the snapshots.
if not defined CI pause
popd
exit /b %status%

rem Everything except +ust, with 64-bit or 32-bit programs.
:programs
set bits=%1
set samples=prove\%1
set what=%1: this system does not run such programs
prove\stepper.exe ".\prove.cmd none" 1 %samples%\leak_steady.exe >>%output% 2>&1
if not %errorlevel%==0 goto skip

rem leak_steady.c leaks 64 blocks, 65536 bytes, in each step.
set dump=run
call :try 0 "%bits% run: a program is traced from its start" prove\stepper.exe ".\prove.cmd steps" 3 .\hsnap.exe run -- %samples%\leak_steady.exe
call :exactly 65536 64 "%bits% run: what a step leaks" -i "!grow_log" %work%\%bits%-run1.txt %work%\%bits%-run2.txt
call :quiet "%bits% run: a walk finds 0 untraced, and 0 are not found" %work%\%bits%-walk.txt
set dump=attach
call :try 0 "%bits% attach: a program that runs is traced, and let go" prove\stepper.exe ".\prove.cmd attach" 4 %samples%\leak_steady.exe
call :exactly 65536 64 "%bits% attach: what a step leaks" -i "!grow_log" %work%\%bits%-attach2.txt %work%\%bits%-attach3.txt
call :try 0 "%bits% run --at-exit: four steps, and the end" prove\stepper.exe ".\prove.cmd none" 4 .\hsnap.exe run --at-exit %work%\%bits%-exit.txt -- %samples%\leak_steady.exe
call :exactly 262144 256 "%bits% run --at-exit: what four steps leak" -i "!grow_log" %work%\%bits%-exit.txt
call :quiet "%bits% run --at-exit: no warning" %work%\%bits%-exit.txt
call :try 0 "%bits% record: a recording, with marks" prove\stepper.exe ".\prove.cmd marks" 2 .\hsnap.exe record -o %work%\%bits%-marks.hrec -- %samples%\leak_steady.exe
call :exactly 65536 64 "%bits% record: what is leaked between two marks" -i "!grow_log" %work%\%bits%-marks.hrec@step1 %work%\%bits%-marks.hrec@step2

rem memory_test.cpp loses 1200 objects of 40 bytes; it makes ten buffers of 10 MiB in turn, and keeps two more.
call :try 0 "%bits% record: three seconds" .\hsnap.exe record -v -o %work%\%bits%.hrec -- %samples%\memory_test.exe --seconds 3
call :exactly 48000 1200 "%bits% record: small objects that are left" -i "!InnerLoopOperation" %work%\%bits%.hrec
call :exactly 104857600 10 "%bits% record: large buffers that come and go" --transient -i "!ManipulateTemporaryBuffer" %work%\%bits%.hrec
call :exactly 31457280 3 "%bits% record: buffers at the peak" --heap virtual --module memory_test %work%\%bits%.hrec@peak

rem leak_heaps.c leaks 20 blocks of 300 bytes per step, in a heap of its own; a number may look like the
rem address of a block. The blocks of leak_steady.c are in a list.
call :try 0 "%bits% -g: two steps, and the end" prove\stepper.exe ".\prove.cmd none" 2 .\hsnap.exe run -g --at-exit %work%\%bits%-lost.txt -- %samples%\leak_heaps.exe
call :try 0 "%bits% -g: no more is lost than was leaked" .\hdiff.exe --max-growth "12000,40" --lost -i "!leak_private" %work%\%bits%-lost.txt
call :try 1 "%bits% -g: more than half of it is" .\hdiff.exe --max-growth "6000,20" --lost -i "!leak_private" %work%\%bits%-lost.txt
call :try 0 "%bits% -g: blocks in a list" prove\stepper.exe ".\prove.cmd none" 2 .\hsnap.exe run -g --at-exit %work%\%bits%-held.txt -- %samples%\leak_steady.exe
call :try 0 "%bits% -g: none of them is lost" .\hdiff.exe --max-growth "0,0" --lost -i "!grow_log" %work%\%bits%-held.txt

call :try 0 "%bits% hsym: names go into a dump" .\hsym.exe -o %work%\%bits%-named.txt %work%\%bits%-run2.txt
call :exactly 131072 128 "%bits% hsym: they are there without the program" --no-local-files -i "!grow_log" %work%\%bits%-named.txt
call :try 0 "%bits% hsym: and were not before" .\hdiff.exe --max-growth "0,0" --no-local-files -i "!grow_log" %work%\%bits%-run2.txt
goto :eof

rem Stacks recorded by Windows.
:ust
set what=+ust: Wine records no stacks
if exist "%SystemRoot%\System32\winecfg.exe" goto skip
set what=+ust: start prove.cmd as administrator to try it
fltmc >nul 2>&1
if not %errorlevel%==0 goto skip
echo If this is broken off, take the flag back with:  hsnap ust off leak_steady.exe
call :try 0 "+ust: the flag is set" .\hsnap.exe ust on leak_steady.exe
set options=--stacks=ust
for %%b in (x64 x86) do call :ust_programs %%b
call :try 0 "+ust: the flag is taken back" .\hsnap.exe ust off leak_steady.exe
goto :eof

:ust_programs
set bits=%1
set samples=prove\%1
set dump=ust
prove\stepper.exe ".\prove.cmd none" 1 %samples%\leak_steady.exe >nul 2>&1
if not %errorlevel%==0 goto :eof
call :try 0 "%bits% +ust: a program with stacks by Windows" prove\stepper.exe ".\prove.cmd steps" 2 %samples%\leak_steady.exe
call :exactly 65536 64 "%bits% +ust: what a step leaks" -i "!grow_log" %work%\%bits%-ust1.txt %work%\%bits%-ust2.txt
goto :eof

rem call :try STATUS WHAT COMMAND...: the command must end with this status.
:try
set want=%1
set what=%~2
set command=
:word
set command=%command% %3
shift /3
if not "%~3"=="" goto word
>>%output% echo.
>>%output% echo ====%command%
%command% <nul >>%output% 2>&1
call :judge %want% %errorlevel% "%what%"
goto :eof

rem call :quiet WHAT FILE: the snapshot must exist and have no warnings.
:quiet
set got=2
if exist %2 set got=0
if exist %2 for /f "usebackq tokens=2,3" %%i in ("%~2") do if "%%i %%j"=="hsnap: warning" set got=1
call :judge 0 %got% %1
goto :eof

rem call :exactly BYTES BLOCKS WHAT ARG...: hdiff with these arguments must find exactly this amount.
:exactly
set /a fewer_bytes=%1-1
set /a fewer_blocks=%2-1
>>%output% echo.
>>%output% echo ==== .\hdiff.exe %4 %5 %6 %7 %8 %9
.\hdiff.exe --max-growth %1,%2 %4 %5 %6 %7 %8 %9 >>%output% 2>&1
set got=%errorlevel%
.\hdiff.exe --max-growth %fewer_bytes%,%2 %4 %5 %6 %7 %8 %9 >nul 2>&1
set got=%got%%errorlevel%
.\hdiff.exe --max-growth %1,%fewer_blocks% %4 %5 %6 %7 %8 %9 >nul 2>&1
call :judge 011 %got%%errorlevel% %3
goto :eof

rem call :judge WANTED GOT WHAT
:judge
set verdict=ok      %~3
if not "%1"=="%2" set verdict=FAILED  %~3 (status %2, not %1)
if not "%1"=="%2" >>%work%\failed echo %~3
echo %verdict%
>>%results% echo %verdict%
goto :eof

:skip
echo skipped %what%
>>%results% echo skipped %what%
goto :eof
