package messages

import "github.com/partita-go/partita/ids"

// CommonTrace returns the trace that all elements belong to, zero if they have none in common.
func CommonTrace[E any](elements []E, of func(*E) ids.TraceID) ids.TraceID {
	if len(elements) == 0 {
		return 0
	}
	t := of(&elements[0])
	for i := range elements {
		if of(&elements[i]) != t {
			return 0
		}
	}
	return t
}

// TraceOfEvents is [CommonTrace] for events.
func TraceOfEvents(events []Event) ids.TraceID {
	return CommonTrace(events, func(e *Event) ids.TraceID { return e.Trace })
}

// TraceOfDelivery is [CommonTrace] for what is delivered to a subscription.
func TraceOfDelivery(events []LogEvent) ids.TraceID {
	return CommonTrace(events, func(e *LogEvent) ids.TraceID { return e.Event.Trace })
}
