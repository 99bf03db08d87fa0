// Package metrics tells Prometheus what an application does: its actors, its partitions, its store, its subscriptions,
// and the requests of its HTTP API. Whoever does not import it pays nothing for it.
//
//	m := metrics.New(metrics.Options{})
//	parts := partition.NewAppParts(system, partition.Options{Observer: m})
//	app, err := parts.Deploy(ctx, application, store)
//	m.Watch(app, store)
//	prometheus.MustRegister(m)
//
// What the actors do is counted while they do it. All else is looked up when somebody asks: see docs/metrics.md for
// what each metric means, and what to be alerted by.
package metrics
