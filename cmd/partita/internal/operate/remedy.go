package operate

import (
	"fmt"
	"strings"

	"github.com/partita-go/partita/storage/verify"
)

// remedy is what repairs a fault.
type remedy string

// The remedies.
const (
	// startIt: the next start does it.
	startIt remedy = "start the application"
	// deleteState: what is wrong can be rebuilt from the log.
	deleteState remedy = "delete state.db"
	// forgetSubscriptions: where consumers stand cannot be derived from the log.
	forgetSubscriptions remedy = "delete subscriptions.db"
	// newLaunch: which numbers generators of ids have cannot be derived from the log of a store. Of a node, which has a
	// replicated log, all others know them, and go on with the launch: it makes no new file.
	newLaunch remedy = "deploy with a new launch number"
	// copyMeta: a meta page of the log can be taken from the other one.
	copyMeta remedy = "copy the meta page"
	// compactStore: what is wrong is not taken along.
	compactStore remedy = "compact"
	// newerLog: the log is too short, or state.db is the wrong file.
	newerLog remedy = "restore from a newer backup"
	// restoreLog: the log itself is wrong.
	restoreLog remedy = "restore from a backup"
)

// words says what to do.
func (r remedy) words(dir string) string {
	switch r {
	case startIt:
		return "start the application: state.db is missing, and it rebuilds the file from log.db"
	case deleteState:
		return fmt.Sprintf("stop the application, move %s/state.db away, start it: it rebuilds the file from log.db. Not if log.db was put back from an older copy: then the last numbers would be given again", dir)
	case forgetSubscriptions:
		return fmt.Sprintf("delete the subscription that is named (partita subscriptions delete --db %s --name NAME), or stop the application and move %s/subscriptions.db away: then all subscriptions are forgotten. One that is made anew begins at the beginning, or at the end, as it is told. Not if log.db was put back from an older copy, or has lost its end: then restore from a newer backup, since its last numbers would be given again. docs/operating.md, 'Subscriptions of another log', says more", dir, dir)
	case newLaunch:
		return fmt.Sprintf("if this is the store of a node of a cluster: remove the node, and let a new one join in its place (docs/cluster.md, 'Nodes are added and removed'). Else stop the application, move %s/ids.db away, and deploy with a launch number that was never used with this store. Ids of earlier launches stay as they are", dir)
	case copyMeta:
		return "restore from a backup (partita restore). If there is none, copy the valid meta page over the damaged one, on a copy of log.db, as docs/operating.md says under 'A damaged meta page'; the last commit may be lost"
	case compactStore:
		return fmt.Sprintf("stop the application, copy the store without it (partita compact --db %s --to NEW), and use the copy", dir)
	case restoreLog:
		return "restore from a backup: partita restore --from BACKUP --to NEW. The log is the truth, there is nothing to rebuild it from"
	case newerLog:
		return "if log.db was put back from an older copy, or has lost its end: restore from a newer backup (partita restore), and do not delete state.db, since the last numbers would be given again. Only if state.db was put beside this log from another copy: put the right one back, or move it away. docs/operating.md, 'A log that is too short', says more"
	}
	return string(r)
}

// remedyOf returns what repairs a fault, if it is the only one.
func remedyOf(f verify.Fault) remedy {
	switch {
	case f.Check == verify.CheckMissing:
		return startIt
	case f.Projection:
		return deleteState
	case f.Check == verify.CheckLogEnd:
		return newerLog
	case f.Check == verify.CheckHeader:
		return compactStore
	case strings.Contains(f.Where, "/ids.db"):
		return newLaunch
	case f.Check == verify.CheckSubscription, strings.Contains(f.Where, "subscriptions.db"):
		return forgetSubscriptions
	case strings.Contains(f.Where, "meta page"):
		return copyMeta
	}
	return restoreLog
}

// remedies are what repairs each of the faults that a check has found, also of those that are
// not told in words.
type remedies map[remedy]bool

// add takes a fault that was found.
func (all remedies) add(f verify.Fault) { all[remedyOf(f)] = true }

// beside returns what replaces a remedy because of the others. What restores the log rebuilds
// state.db as well; and without state.db nobody would know that the log is too short.
func (all remedies) beside(r remedy) remedy {
	if r == startIt || r == deleteState {
		for _, ofLog := range []remedy{newerLog, restoreLog, copyMeta} {
			if all[ofLog] {
				return ofLog
			}
		}
	}
	return r
}

// actionResult is one thing to do, as JSON.
type actionResult struct {
	Remedy remedy `json:"remedy"`
	Text   string `json:"text"`
}

// actions returns what is to be done about a store, in this order.
func (all remedies) actions(dir string) []actionResult {
	actions := []actionResult{}
	for _, r := range []remedy{startIt, deleteState, forgetSubscriptions, newLaunch, compactStore, copyMeta, newerLog, restoreLog} {
		if all[r] && all.beside(r) == r {
			actions = append(actions, actionResult{Remedy: r, Text: r.words(dir)})
		}
	}
	return actions
}
