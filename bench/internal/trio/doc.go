// Package trio measures three nodes on one machine, each in a process of its own, which
// have events together: those of partita, of NATS JetStream and of etcd; and partita
// alone. Callers are inside the nodes' processes, so that no client and no protocol of
// one is measured against that of another.
package trio
