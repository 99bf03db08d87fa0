package cluster

import (
	"encoding/hex"
	"net"

	"github.com/partita-go/partita/storage/replog"
)

// hostOf returns a host that stands for a node in URLs: a node's name may have any bytes.
func hostOf(id replog.NodeID) string { return hex.EncodeToString([]byte(id)) }

// nodeOf returns the node that a host with a port stands for.
func nodeOf(address string) (replog.NodeID, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	id, err := hex.DecodeString(host)
	return replog.NodeID(id), err
}
