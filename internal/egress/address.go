package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrForbidden is the cause of every dial that Check refused.
var ErrForbidden = errors.New("egress to this address is forbidden")

// never is dialled by nobody: addresses that answer with credentials of the
// machine, that mean this machine by another name, that are not unicast, or
// that carry another address inside.
var never = prefixes(
	"0.0.0.0/8",                                         // this network
	"169.254.0.0/16",                                    // link-local; metadata of AWS, GCP, Azure, and ECS
	"100.100.100.200/32",                                // metadata of Alibaba
	"168.63.129.16/32",                                  // wire server of Azure
	"192.0.0.0/24",                                      // protocol assignments; metadata of Oracle at .192
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
	"192.88.99.0/24",                 // 6to4 relay
	"224.0.0.0/4",                    // multicast
	"240.0.0.0/4",                    // reserved and broadcast
	"::/96",                          // unspecified, IPv4-compatible; ::1 is told apart before
	"::ffff:0:0/96",                  // IPv4-mapped
	"64:ff9b::/96", "64:ff9b:1::/48", // NAT64
	"100::/64",          // discard
	"2001::/32",         // Teredo
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4
	"fd00:ec2::254/128", // metadata of AWS
	"fd20:ce::254/128",  // metadata of GCP
	"fd00:42::42/128",   // metadata of Scaleway
	"fe80::/10",         // link-local
	"fec0::/10",         // site-local
	"ff00::/8",          // multicast
)

// private may be dialled where the operator named the host.
var private = prefixes(
	"127.0.0.0/8", "::1/128",
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
	"100.64.0.0/10", // carrier-grade NAT, which clusters use for pods
	"198.18.0.0/15", // benchmarks
	"fc00::/7",
)

// Check tells whether ip may be dialled. The error wraps ErrForbidden.
func Check(ip netip.Addr, allowPrivate bool) error {
	ip = ip.WithZone("")
	if !ip.IsValid() {
		return fmt.Errorf("%w: it is no address", ErrForbidden)
	}
	if ip != netip.IPv6Loopback() && within(never, ip) {
		return fmt.Errorf("%w: %s is never allowed", ErrForbidden, ip)
	}
	if !allowPrivate && within(private, ip) {
		return fmt.Errorf("%w: %s is private; name the host in the configuration with allow_private", ErrForbidden, ip)
	}
	return nil
}

// NamesPrivate reports whether a configured host is by its own spelling a
// private place: a private address or localhost. To write it is to allow it.
func NamesPrivate(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && within(private, ip)
}

func within(set []netip.Prefix, ip netip.Addr) bool {
	for _, p := range set {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
