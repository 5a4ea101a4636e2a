# SPDX-License-Identifier: GPL-2.0-only
# The verdict on one job's TAP. In: rc, its exit code. Prints "PASSED FAILED SKIPPED", then a line
# "skip ..." for each skipped result and, for each failed one, it and the lines that explain it.

function fail(text) {
    failed++
    notes = notes text "\n"
}

{ sub(/\r$/, "") }

# cmocka (to 1.1.5) prints skipped tests as "not ok N # SKIP NAME".
/^(not )?ok .*# *[Ss][Kk][Ii][Pp]/ {
    sub(/^(not )?ok *[0-9]* *-? */, "")
    sub(/# *[Ss][Kk][Ii][Pp] */, "# ")
    notes = notes "skip " $0 "\n"
    results++
    skipped++
    explain = 0
    next
}
/^ok( |$)/ {
    results++
    passed++
    explain = 0
    next
}
/^not ok( |$)/ {
    results++
    fail($0)
    explain = 12
    next
}
/^1\.\.[0-9]+/ {
    planned += substr($0, 4)
    plans++
    next
}
/^Bail out!/ {
    fail($0)
    next
}
/^# (ok|not ok) - / { next } # cmocka's word on a group
explain > 0 && /^#/ {
    notes = notes "    " $0 "\n"
    explain--
}
{ last[NR % 15] = $0 }

END {
    if (rc == 124 || rc == 137)
        fail("not ok - it was ended: its time was over")
    else if (!plans)
        fail("not ok - it ended without its plan, with exit code " rc)
    else if (results != planned)
        fail("not ok - it ended after " results " of " planned " results, with exit code " rc)
    else if (rc != 0 && !failed)
        fail("not ok - exit code " rc)
    if (notes ~ /(^|\n)not ok - /)
        for (i = NR - 14; i <= NR; i++)
            if (i > 0 && (i % 15) in last)
                notes = notes "    " last[i % 15] "\n"
    print passed + 0, failed + 0, skipped + 0
    printf "%s", notes
}
