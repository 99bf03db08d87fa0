// Package calendar cuts local time into the periods that sequences begin again in. It is pure:
// it knows no clock, and no time zone but those that it is given; only [LoadZone] reads files.
//
// A period is named by the [Date] of its first day. A [Rule] says how long periods are. The
// period of a business date needs no more: [Rule.PeriodOf]. The period of an instant depends on
// the zone too, and a workspace may change its zone: [Zones.PeriodAt].
//
//	business date ───────────────────────────────────────> Rule.PeriodOf ──> period
//	                                                            ^
//	instant ──> Zones: which zone counts ──> Zone: local date ──┘
//
// Local time is set back at times, also over midnight. Periods are not: one begins at the first
// instant at which local time has reached it, and ends when the next one begins. So the period
// of rising instants never falls, and it is known until when it lasts: whoever asks again only then
// pays next to nothing for it.
//
// The files, in the order to read them:
//
//	date.go    a day, wherever that is
//	unit.go    how often a sequence begins again
//	rule.go    a unit and the first month of a year: which period a date lies in
//	zone.go    a time zone, and when a date begins in it
//	zones.go   the zones of a workspace, one after the other
//	errors.go  what is refused
package calendar
