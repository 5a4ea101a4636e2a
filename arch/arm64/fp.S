/* SPDX-License-Identifier: GPL-2.0-only */
    .arch_extension fp
    .arch_extension simd
    .text

.macro each_pair op
    \op q0, q1, [x0, #0]
    \op q2, q3, [x0, #32]
    \op q4, q5, [x0, #64]
    \op q6, q7, [x0, #96]
    \op q8, q9, [x0, #128]
    \op q10, q11, [x0, #160]
    \op q12, q13, [x0, #192]
    \op q14, q15, [x0, #224]
    \op q16, q17, [x0, #256]
    \op q18, q19, [x0, #288]
    \op q20, q21, [x0, #320]
    \op q22, q23, [x0, #352]
    \op q24, q25, [x0, #384]
    \op q26, q27, [x0, #416]
    \op q28, q29, [x0, #448]
    \op q30, q31, [x0, #480]
.endm

    .global fp_save
fp_save:
    each_pair stp
    mrs x1, fpcr
    mrs x2, fpsr
    add x0, x0, #512
    stp x1, x2, [x0]
    ret

    .global fp_load
fp_load:
    each_pair ldp
    add x0, x0, #512
    ldp x1, x2, [x0]
    msr fpcr, x1
    msr fpsr, x2
    ret
