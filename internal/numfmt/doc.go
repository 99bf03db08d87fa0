// Package numfmt prints numbers of sequences as people read them, "INV/2026/0042", and reads them again.
//
// A pattern is text with fields:
//
//	{n}      the number
//	{n:04}   the number with at least 4 digits, the first ones zeros; 1 to 20
//	{yyyy}   the year that the period begins in, 4 digits; of a quarter, the one that its fiscal year begins in
//	{mm}     the month of the period's first day, 01 to 12
//	{dd}     its day, 01 to 31
//	{q}      the quarter of the fiscal year, 1 to 4
//	{gggg}   the ISO 8601 year of the week, 4 digits
//	{ww}     the ISO 8601 week, 01 to 53
//	{fy}     the year that the fiscal year ends in, 4 digits
//	{{  }}   the signs { and } themselves
//
// A fiscal year has two usual names, and invoicing systems have a field for each: the year that it begins in, which
// is {yyyy} here, and the one that it ends in. Both may be printed: "2025/2026-0001". One that begins in January
// begins and ends in the same year. Dates are of the years 1 to 9999: for the year 0 that the first fiscal year can
// begin in, and 10000 that the last one can end in, 0000 is printed.
//
// # Exactness
//
// One text stands for one number of one period, and a number of a period has one text:
//
//   - A pattern has {n} once, and just the fields that name a period of the sequence: {yyyy}, {mm} and {dd} if it
//     restarts each day, {gggg} and {ww} each week, {yyyy} and {mm} each month, {yyyy} or {fy} or both each year,
//     and {q} with them each quarter. More would mislead: the day of a month's period is always 01.
//   - All but {n} is as wide for each number. So its place follows from the length of the text, whatever stands beside
//     it: "{n}0" and "2{n}" are as good as "{n}".
//   - Text is taken only if it is what its number prints: {n} does not take "007", nor {n:04} "00012".
//
// Text is compared byte for byte. Nothing is done about letters that look alike.
package numfmt
