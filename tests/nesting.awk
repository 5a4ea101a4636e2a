# SPDX-License-Identifier: GPL-2.0-only
# Reads the JSON of `paravane trace`, one event a line. Prints what is wrong: events that are out of order,
# slices of a track that overlap without lying in each other; and last how many events of each kind there are.
function number(key, text) {
	text = $0
	if (!sub(".*\"" key "\":", "", text)) return 0
	sub("[,}].*", "", text)
	sub("\\.", "", text) # to ns
	return text + 0
}
/"ph":"M"/ { counts["names"]++; next }
/"ph":/ {
	track = number("pid") "/" number("tid")
	start = number("ts")
	stop = start + number("dur")
	if (start < last) print NR ": before the event above: " $0
	last = start
	if (/"ph":"[iC]"/) { counts["instants"]++; next }
	counts["slices"]++
	while (depth[track] > 0 && open[track, depth[track]] <= start) depth[track]--
	if (depth[track] > 0 && open[track, depth[track]] < stop) print NR ": reaches over the end of another: " $0
	if (depth[track] > 1) print NR ": three deep: " $0
	open[track, ++depth[track]] = stop
	if (/"pid":1,/ && depth[track] == 1) busy[track] += stop - start
}
END {
	printf "events: %d names, %d slices, %d instants\n", counts["names"], counts["slices"], counts["instants"]
}
