//go:build !nopeers

package trio

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"github.com/partita-go/partita/bench/internal/event"
)

// etcdTicks is how many ticks an election takes, as in etcd's defaults.
const etcdTicks = 10

// etcdQuota is how large the database may be: the most that etcd advises.
const etcdQuota = 8 << 30

// etcdNode is an etcd server with two others. An event is a transaction: if its workspace's counter is what the caller knows,
// the counter and the event are put. Each caller has a workspace of its own, so that no transaction fails.
type etcdNode struct {
	config  config
	server  *embed.Etcd
	client  *clientv3.Client
	sources []*event.Source
	made    []uint64
}

func newEtcd(_ context.Context, c config) (system, error) {
	n := &etcdNode{config: c, sources: newSources(c), made: make([]uint64, c.Callers)}
	e := embed.NewConfig()
	e.Name, e.Dir = c.Name, c.Dir
	e.TickMs, e.ElectionMs = uint(c.Failover.Milliseconds()/etcdTicks), uint(c.Failover.Milliseconds())
	e.QuotaBackendBytes = etcdQuota
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	peer := url.URL{Scheme: "http", Host: c.Peers[c.Name]}
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	client := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	e.InitialCluster = ""
	for name, address := range c.Peers {
		e.InitialCluster += fmt.Sprintf(",%s=http://%s", name, address)
	}
	e.InitialCluster = e.InitialCluster[1:]
	var err error
	if n.server, err = embed.StartEtcd(e); err != nil {
		return nil, err
	}
	select {
	case <-n.server.Server.ReadyNotify():
	case <-time.After(startLimit):
		n.server.Close()
		return nil, errors.New("etcd is not ready")
	}
	n.client = v3client.New(n.server.Server)
	return n, nil
}

func (n *etcdNode) Append(ctx context.Context, caller int, ids bool) error {
	source := n.sources[caller]
	source.Next()
	n.made[caller]++
	counter := fmt.Sprintf("n/%d", n.config.First+caller)
	key := fmt.Sprintf("e/%d/%020d", n.config.First+caller, n.made[caller])
	value := string(source.Message())
	return again(ctx, n.config.Failover, ids, func(ctx context.Context) error {
		done, err := n.client.Txn(ctx).
			If(clientv3.Compare(clientv3.Version(counter), "=", int64(n.made[caller]-1))).
			Then(clientv3.OpPut(counter, ""), clientv3.OpPut(key, value)).
			Else(clientv3.OpGet(key, clientv3.WithCountOnly())).
			Commit()
		switch {
		case err != nil:
			return err
		case !done.Succeeded && done.Responses[0].GetResponseRange().Count == 0:
			return fmt.Errorf("%w: %s is not what its only caller knows", errWrong, counter)
		}
		return nil
	})
}

func (n *etcdNode) Leads() bool {
	s := n.server.Server
	return s.Leader() != 0 && s.Leader() == s.MemberID()
}

func (n *etcdNode) Stored(ctx context.Context) (uint64, error) {
	got, err := n.client.Get(ctx, "e/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return uint64(got.Count), nil
}

func (n *etcdNode) Close(context.Context) error {
	_ = n.client.Close() // it has no connection to close
	n.server.Close()
	return nil
}
