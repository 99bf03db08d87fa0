package calendar

import "errors"

// Errors of dates.
var (
	// ErrDate is returned when text is not a day of the calendar.
	//
	// From: ParseDate.
	// Do: correct the text: want one like 2026-03-29.
	ErrDate = errors.New("not a date")
)
