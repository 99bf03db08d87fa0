// Package calendar cuts local time into the periods that sequences restart in. It is pure: it
// knows no clock, and no zone but those that it is given.
package calendar
