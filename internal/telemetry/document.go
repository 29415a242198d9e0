package telemetry

import (
	"fmt"
	"strings"
)

// Document renders docs/metrics.md.
func Document(rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Metrics

Served at `+"`/metrics`"+` of the admin listener, in the Prometheus text and OpenMetrics formats. Seconds and tokens are base units. Money is
in nano-dollars, because they are integers: divide by 1e9 for dollars. The ledger, not a metric, is the account.

A scrape needs an admin token (`+"`authorization: {credentials_file: …/admin-token}`"+` in Prometheus), or `+"`admin: {open_metrics: true}`"+` in the
configuration, which lets whoever reaches the admin listener read the metrics, and nothing else, without one.

Label values are bounded whatever clients send: `+"`model`, `pool` and `backend`"+` are names that the configuration declares (at most %d, %d and %d),
any other name is %q; `+"`tenant`"+` is one of the %d busiest or %q, and the sum over it is always the whole; in
`+"`sluice_contract_*`"+` it is one that the configuration gives a contract, of at most %d. in `+"`sluice_shadow_*`"+` but the refusals, `+"`model` and `pool`"+` are together at most %d. Keys, users, tasks and request ids are
never labels: they are in the log line and in the ledger. `+"`outcome`, `reason`, `scope`, `dimension` and `source`"+` are the words of the glossary.

| metric | type | labels | what it says |
|---|---|---|---|
`, MaxModels, MaxPools, MaxBackends, Other, MaxTenants, Other, MaxContracts, MaxShadows)
	for _, r := range rows {
		labels := "–"
		if len(r.Labels) > 0 {
			labels = "`" + strings.Join(r.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, r.Type, labels, r.Help)
	}
	b.WriteString("\nBeside these: the `go_*` and `process_*` metrics of the runtime.\n")
	return b.String()
}
