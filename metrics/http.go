package metrics

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// httpMetrics are about the requests of an HTTP server.
type httpMetrics struct {
	requests    *prometheus.CounterVec
	took        *prometheus.HistogramVec
	connections prometheus.Gauge
	// limit is how many connections there may be, nil if nobody has said it.
	limit prometheus.Gauge
}

func newHTTPMetrics(connections int) httpMetrics {
	took := histogram("partita_http_request_duration_seconds", "How long HTTP requests took, streams and those that waited for events too.")
	m := httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "partita_http_requests_total", Help: "HTTP requests that were answered.",
		}, []string{"route", "status"}),
		took:        prometheus.NewHistogramVec(took, []string{"route"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "partita_http_connections", Help: "Open HTTP connections."}),
	}
	if connections > 0 {
		m.limit = prometheus.NewGauge(prometheus.GaugeOpts{Name: "partita_http_connection_limit", Help: "How many HTTP connections there may be."})
		m.limit.Set(float64(connections))
	}
	return m
}

// Describe and Collect are those of all of them.
func (h *httpMetrics) Describe(to chan<- *prometheus.Desc) {
	h.requests.Describe(to)
	h.took.Describe(to)
	h.connections.Describe(to)
	if h.limit != nil {
		h.limit.Describe(to)
	}
}

// Collect is as Describe.
func (h *httpMetrics) Collect(to chan<- prometheus.Metric) {
	h.requests.Collect(to)
	h.took.Collect(to)
	h.connections.Collect(to)
	if h.limit != nil {
		h.limit.Collect(to)
	}
}

// noRoute stands for requests that came to no route: they were refused before, or a handler without patterns has
// answered.
const noRoute = "none"

// CountRequests returns a handler that passes everything on, and counts it by the pattern of [http.ServeMux] that it
// came to.
func (m *Metrics) CountRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, status := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			route := r.Pattern
			if route == "" {
				route = noRoute
			}
			m.http.requests.WithLabelValues(route, strconv.Itoa(status.status)).Inc()
			m.http.took.WithLabelValues(route).Observe(time.Since(begun).Seconds())
		}()
		next.ServeHTTP(status, r)
	})
}

// statusWriter remembers the status of the answer.
type statusWriter struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	if !w.sent && status >= http.StatusOK { // what comes before the answer is not it
		w.status, w.sent = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *statusWriter) Write(b []byte) (int, error) {
	w.sent = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ConnState counts the connections of a server: it is for the field of [http.Server] of that name.
func (m *Metrics) ConnState(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		m.http.connections.Inc()
	case http.StateClosed, http.StateHijacked:
		m.http.connections.Dec()
	case http.StateActive, http.StateIdle:
	}
}
