package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
)

// states are those of a subscription, from the one that must be told if a lane has it.
var states = []string{
	partition.SubscriptionFailed.String(), partition.SubscriptionStopped.String(), partition.SubscriptionPaused.String(),
	partition.SubscriptionNotRunning.String(), partition.SubscriptionRunning.String(),
}

// joined is a subscription of which each shard has told its part.
func joined(parts []httpapi.Subscription) httpapi.Subscription {
	all := parts[0]
	for _, s := range parts[1:] {
		if slices.Index(states, s.State) < slices.Index(states, all.State) {
			all.State = s.State
		}
		all.Stopped, all.Error = cmp.Or(all.Stopped, s.Stopped), cmp.Or(all.Error, s.Error)
		all.LagEvents += s.LagEvents
		all.LagSeconds = max(all.LagSeconds, s.LagSeconds)
		all.Parked += s.Parked
		all.Delivered += s.Delivered
		all.Lanes = append(all.Lanes, s.Lanes...)
	}
	slices.SortFunc(all.Lanes, func(a, b httpapi.Lane) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

// listSubscriptions answers with a page of all subscriptions.
func (n *Node) listSubscriptions(w http.ResponseWriter, r *http.Request) {
	byName := func(a, b httpapi.Subscription) int { return strings.Compare(a.Name, b.Name) }
	some, more, ok := gatherPages(n, w, r, byName)
	if !ok {
		return
	}
	page := httpapi.Page[httpapi.Subscription]{Results: []httpapi.Subscription{}}
	for len(some) > 0 {
		if len(page.Results) == limitOf(r) {
			more = true
			break
		}
		same := 1
		for same < len(some) && some[same].Name == some[0].Name {
			same++
		}
		page.Results = append(page.Results, joined(slices.Clone(some[:same])))
		some = some[same:]
	}
	if more {
		page.Next = linkBehind(r, page.Results[len(page.Results)-1].Name)
	}
	answer(w, &page)
}

// listParked answers with a page of what a subscription has parked.
func (n *Node) listParked(w http.ResponseWriter, r *http.Request) {
	some, more, ok := gatherPages(n, w, r, func(a, b httpapi.ParkedEvent) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	if !ok {
		return
	}
	if most := limitOf(r); len(some) > most {
		some, more = some[:most], true
	}
	page := httpapi.Page[httpapi.ParkedEvent]{Results: append([]httpapi.ParkedEvent{}, some...)}
	if more {
		last := some[len(some)-1]
		page.Next = linkBehind(r, fmt.Sprintf("%d-%d", last.Partition, last.Offset))
	}
	answer(w, &page)
}

// gatherPages returns what the pages of all shards have, see merge. If it is not ok, the client has an answer.
func gatherPages[T any](n *Node, w http.ResponseWriter, r *http.Request, compare func(a, b T) int) (all []T, more, ok bool) {
	answers := n.gather(r, nil)
	var pages []httpapi.Page[T]
	for _, said := range answers {
		if said.status == http.StatusNotFound {
			continue
		}
		if said.status != http.StatusOK {
			said.send(w)
			return nil, false, false
		}
		var page httpapi.Page[T]
		if err := json.Unmarshal(said.body.Bytes(), &page); err != nil {
			httpapi.Refuse(w, r, err)
			return nil, false, false
		}
		pages = append(pages, page)
	}
	if len(pages) == 0 {
		answers[0].send(w)
		return nil, false, false
	}
	all, more = merge(pages, compare)
	return all, more, true
}

// merge returns what pages have, in order, and whether there is more. What may lie behind something that a page has no room
// for is left out.
func merge[T any](pages []httpapi.Page[T], compare func(a, b T) int) (all []T, more bool) {
	var ends []T
	for _, page := range pages {
		if page.Next != nil && len(page.Results) > 0 {
			ends = append(ends, page.Results[len(page.Results)-1])
		}
		all = append(all, page.Results...)
	}
	slices.SortStableFunc(all, compare)
	if len(ends) > 0 {
		first := slices.MinFunc(ends, compare)
		all = slices.DeleteFunc(all, func(one T) bool { return compare(one, first) > 0 })
	}
	return all, len(ends) > 0
}

// limitOf is how much a page may have. That it can be, each shard has said.
func limitOf(r *http.Request) int {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		return httpapi.DefaultLimit
	}
	return limit
}

// linkBehind is where a list goes on.
func linkBehind(r *http.Request, last string) *string {
	query := url.Values{"after": {last}}
	if limit := r.URL.Query().Get("limit"); limit != "" {
		query.Set("limit", limit)
	}
	link := r.URL.EscapedPath() + "?" + query.Encode()
	return &link
}
