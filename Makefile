# Two commands: `make run` and `make test`. Logic lives in Go and in scripts/.

.PHONY: run test quick lint fmt fuzz bench bench-profile bench-micro proof soak generate build clean

run: ## start Sluice with a simulated fleet: no configuration, account or key
	@go build -o bin/sluice ./cmd/sluice
	@bin/sluice serve

test: ## everything: gates, all tests under -race, both databases, real SDK clients
	scripts/test

quick: ## the ordinary Go tests alone
	go test ./...

lint: ## formatting, vet, modules, static analysis
	scripts/lint

fmt: ## format what lint would complain of
	go tool -modfile=tools/go.mod gofumpt -w -extra $$(git ls-files '*.go')

fuzz: ## every fuzz target, FUZZTIME each (default 30s)
	scripts/fuzz $(or $(FUZZTIME),30s)

bench: ## Sluice beside a plain reverse proxy: ratios of CPU, memory and latency (ARGS=-json …)
	go run ./test/bench $(ARGS)

bench-profile: ## CPU and heap profiles of the gateway under each of these loads
	go run ./test/bench -profile .cache/profile $(ARGS)

bench-micro: ## Go benchmarks of single packages
	go test -run '^$$' -bench . -benchmem ./internal/...

proof: ## crash loops, streams at scale and fair shares at full size: docs/proof.md
	SLUICE_CRASH_ROUNDS=50 SLUICE_SCALE=full go test -count=1 -timeout 2h -v ./test/crash ./test/scale
	SLUICE_FAIR=full go test -count=1 -timeout 1h -v ./test/fair

soak: ## mixed traffic with faults for SOAK (default 1h): docs/proof.md
	SOAK=$(or $(SOAK),1h) go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./test/scale

generate: ## schema, configuration reference and price book
	go generate ./...

build: ## one static binary in bin/
	CGO_ENABLED=0 go build -trimpath -o bin/sluice ./cmd/sluice

clean:
	rm -rf bin .cache
