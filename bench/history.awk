# SPDX-License-Identifier: GPL-2.0-only
# The picture of timer advancement as it adapts: of a trace in Chrome's format, the lateness of the first
# expiries of vCPU 0 and the advance that each led to, as SVG.
function line(values, n, colour,    i, points) {
	for (i = 1; i <= n; i++) points = points sprintf("%.1f,%.1f ", x(i), y(values[i]))
	printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", colour, points
}
function x(i) { return 70 + (i - 1) * 600 / (shown - 1) }
function y(ns) { return 330 - ns * 280 / top }
function text(at_x, at_y, words, more) {
	printf "<text x=\"%d\" y=\"%d\" %s>%s</text>\n", at_x, at_y, more, words
}
BEGIN { shown = 40 }
/"name":"(lateness|advance), vCPU 0"/ {
	value = $0
	sub(/.*"ns":/, "", value)
	value += 0
	if (/"lateness/) late[++lates] = value
	else advance[++advances] = value
	if (value > top) top = value
}
END {
	if (lates < shown || advances < shown) {
		printf "history.awk: found %d expiries, expected %d\n", lates, shown >"/dev/stderr"
		exit 1
	}
	top = (int(top / 500) + 1) * 500
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 390\" font-family=\"sans-serif\" font-size=\"13\">"
	print "<!-- SPDX-License-Identifier: GPL-2.0-only -->"
	print "<rect width=\"700\" height=\"390\" fill=\"white\"/>"
	for (ns = 0; ns <= top; ns += 500) {
		printf "<path stroke=\"#ccc\" d=\"M70 %.1fH670\"/>\n", y(ns)
		text(62, y(ns) + 4, ns, "text-anchor=\"end\"")
	}
	for (i = 10; i <= shown; i += 10) text(x(i), 350, i, "text-anchor=\"middle\"")
	text(370, 375, "expiry", "text-anchor=\"middle\"")
	line(advance, shown, "#1f6fb4")
	line(late, shown, "#c0392b")
	text(70, 25, "How late a vCPU comes for its deadline, ns", "fill=\"#c0392b\"")
	text(400, 25, "by how much the next alarm is advanced, ns", "fill=\"#1f6fb4\"")
	print "</svg>"
}
