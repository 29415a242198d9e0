package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	_ "net/http/pprof" // the control port serves it
	"net/url"
	"os"
)

// servePlain is the process of the plain gateway: httputil.ReverseProxy as its
// documentation has it, with connections kept, and the head start of full
// duplex, without which it loses answers of an upstream as fast as this one.
func servePlain(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the address of the upstream", rolePlain)
	}
	target := &url.URL{Scheme: "http", Host: args[0]}
	quiet := log.New(io.Discard, "", 0) // clients that leave are part of the loads
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 2048, DisableCompression: true},
		ErrorLog:      quiet,
	}
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(data.Addr(), control.Addr())
	server := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1.1: it is there
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = http.Serve(control, nil) }()
	go func() { _ = server.Serve(data) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
