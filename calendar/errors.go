package calendar

import "errors"

// Errors of dates and rules.
var (
	// ErrDate is returned when text is not a day of the calendar.
	//
	// From: ParseDate.
	// Do: correct the text: want one like 2026-03-29.
	ErrDate = errors.New("not a date")
	// ErrRule is returned when there is no such unit, or when a rule has a first month that is none or that
	// changes nothing.
	//
	// From: Rule.Validate, ParseUnit.
	// Do: correct the rule: a first month is one of a year or of its quarters.
	ErrRule = errors.New("not a rule of periods")
)

// Errors of time zones.
var (
	// ErrZone is returned when a name is not that of a time zone of the IANA's database, or names what
	// is another zone on another machine.
	//
	// From: LoadZone, Validate of a descriptor, opening a store whose sequences restart in such a zone.
	// Do: correct the name: want one like Europe/Zurich. If it is newer than the program, update the
	// system's zone database. A store that names it is whole: open it when the machine knows the zone.
	ErrZone = errors.New("not a time zone")
	// ErrZoneChange is returned when a workspace's zone was changed too often, or when a change is older
	// than the one before.
	//
	// From: Zones.Add.
	// Do: leave the zone as it is for 368 days: what was before is forgotten then.
	ErrZoneChange = errors.New("the zone cannot be changed")
)
