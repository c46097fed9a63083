package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/web"
)

// openWeb listens where the configuration says, if it does.
func (a *App) openWeb(ctx context.Context) (err error) {
	// TLS that the web configuration gets after the start takes effect at the next start.
	fromStart := a.cfg.HTTP.Exposed()
	isExposed := func() bool { return fromStart || a.cfg.HTTP.Exposed() }
	promauto.With(a.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "observerd_http_insecure",
		Help: "1 while http.insecure lets in other hosts without TLS or without authentication.",
	}, func() float64 {
		if isExposed() {
			return 1
		}
		return 0
	})
	h := a.cfg.HTTP
	if h.Listen == "" && h.Socket == "" {
		return nil
	}
	o := web.Options{
		Listen: h.Listen, WebConfig: h.WebConfig, Exposed: isExposed, AllowedHosts: h.AllowedHosts, Socket: h.Socket,
		Node: a.cfg.Node.Name, Cluster: a.cfg.Cluster.Name, Version: a.options.Version, Gatherer: a.registry, Logger: a.component("web"),
		Stuck: a.Stuck, Ready: a.ready, Report: a.Report, Explain: plainly,
		Lookups: lookups{a, isExposed},
	}
	if !h.Insecure {
		o.Protected = h.Protected
	}
	if a.web, err = web.New(ctx, o); err != nil {
		return err
	}
	a.cleanups.add("http", a.web.Stop)
	return nil
}

// serveWeb serves what [App.openWeb] has opened.
func (a *App) serveWeb() {
	if a.web == nil {
		return
	}
	a.web.Start()
	if a.cfg.HTTP.Exposed() {
		a.log.Warn("Other hosts are admitted without TLS or without authentication, because of http.insecure", "address", a.web.Addr())
	}
}
