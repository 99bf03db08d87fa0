// Package cluster runs clusters of real processes, `partita serve --node`, over real ports, and hurts them: see make cluster
// and make cluster-faults.
package cluster
