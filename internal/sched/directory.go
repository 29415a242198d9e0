package sched

import (
	"hash/maphash"

	"sluice"
	"sluice/internal/byname"
)

// directory finds tenants by their names. The steps of an arrival all ask for the
// same one, so that the answer to the last question is kept.
type directory struct {
	of    byname.Index[tenantID, tenant, tenantNames]
	last  tenantID
	found *tenant // of last
}

type tenantID struct {
	class  sluice.Class
	tenant sluice.TenantID
}

// tenantNames is how a directory finds tenants.
type tenantNames struct{}

func (tenantNames) Name(t *tenant) tenantID { return tenantID{t.class.index, t.id} }

func (tenantNames) Hash(seed maphash.Seed, id tenantID) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(seed, string(id.tenant)) + uint64(id.class)*odd
}

// find is a tenant of a class, nil if nothing of it waits, runs or is owed.
func (d *directory) find(id tenantID) *tenant {
	if id != d.last {
		d.last, d.found = id, d.of.Find(id)
	}
	return d.found
}

// add enters a tenant. REQUIRES: there is none of its name.
func (d *directory) add(t *tenant) {
	d.of.Add(t)
	d.last, d.found = tenantNames{}.Name(t), t
}

// remove strikes a tenant out.
func (d *directory) remove(t *tenant) {
	d.of.Remove(t)
	if d.found == t {
		d.found = nil
	}
}

// each calls f for all tenants, in no order that matters.
func (d *directory) each(f func(*tenant)) {
	for t := range d.of.All() {
		f(t)
	}
}
