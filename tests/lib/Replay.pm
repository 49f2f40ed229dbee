# What a program says it allocated and freed, replayed without any cleverness: the truth that
# recordings and what hdiff makes of them are held against. Each allocation is kept whole, and every
# question is answered by looking at all of them.
#
# The text has an event a line, in the order in which they happened; words are set apart by one
# blank, numbers are decimal, and times are milliseconds that never go back:
#
#	# a comment; blank lines are none of it either
#	TIME THREAD alloc ID BYTES STACK HEAP
#	TIME THREAD free ID
#	TIME THREAD realloc ID NEW-ID BYTES STACK HEAP
#	TIME THREAD destroy HEAP                        frees what is left in it
#	TIME THREAD commit ADDR BYTES STACK             also reserve, map
#	TIME THREAD decommit ADDR BYTES                 also release, unmap
#	TIME THREAD mark LABEL                          the rest of the line
#
# ID, STACK, HEAP and THREAD are words of any kind; an ID is that of one live block at a time. A STACK
# is written INNERMOST<-CALLER<-...<-main where its functions matter. ADDR has hexadecimal digits. Ranges
# of one sort of memory (heap, committed, reserved, mapped) do not overlap, and a sort knows nothing of
# the others: a range that is reserved and then committed is released in between.
#
# An event is an allocation or a free. A realloc is two, the free first. What goes of ranges may be
# parts of them: each range, the lowest first, is freed whole, and then what stays of it is allocated, as its own
# stack made it. A destroyed heap is as many frees as it had blocks, the oldest first. A mark is none.
#
# A position is so many events: at position 0 nothing has happened. A window is what lies between two
# positions; its allocations are called as WPA does, by where they were (A)llocated and (F)reed,
# (I)nside the window or (O)utside: aifo, aifi, aofi, aofo. What is freed before it or allocated after
# it is none of these.
package Replay;
use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits

# $replay = Replay->new(TEXT)
#	events       how many
#	allocations  in their order: { id, bytes, stack, heap, memory, alloc, free }; heap is the memory's
#	             name for ranges; alloc and free are { index, time, thread }, free is undef of what lives on
#	marks        { label, time, position }
# $replay->position(MS)    after the events of that millisecond and before
# $replay->mark(LABEL)     its position
# $replay->state(POSITION, BY, WHERE)    what lives: { KEY => { bytes, count } }
# $replay->window(FROM, TO, BY, WHERE)
#	{ KEY => { aifo, aifi, aofi, aofo, old, new, size, peak, lifetime } } for each key that has any of the
#	four classes; each is { bytes, count } but
#	old, new     live at the window's beginning and end
#	size         all that was allocated inside: aifo and aifi
#	peak         { bytes, position, time }: the most that lived at once, and the first position with it
#	lifetime     of aifi: { count, sum, min, max } in milliseconds; undef when there are none
# $replay->peak(WHERE)     { bytes, position, time } of the whole
#
# BY is a list of fields of an allocation, whose values are the key with a blank between them:
# ['stack'], ['heap', 'stack'], [] for one sum under ''. WHERE is a function that is asked with an
# allocation in $_, and counts those that it is true for; all of them where there is none.
