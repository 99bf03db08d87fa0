// Package httpapi serves a deployed application over HTTP: it appends events, and lets
// programs in any language read its logs by polling pages, by long polls and as streams, and
// those who operate it look after its subscriptions.
//
//	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
//	api, err := httpapi.New(app, app.Reader(), httpapi.Options{})
//	server := &http.Server{Handler: httpapi.RequireToken(api, token)}
//	server.RegisterOnShutdown(api.Stop)
//
// docs/http.md says how it is used, and the OpenAPI document, which it serves as
// /v1/openapi.json, what each answer looks like. The logs are the positions' own: an offset
// or a cursor names a place behind which nothing will ever appear, so that the server keeps
// nothing about its readers.
//
// Every error is a problem of RFC 9457. Every uint64 is a JSON string, whatever its value:
// many programs read JSON numbers above 2^53-1 wrongly.
package httpapi
