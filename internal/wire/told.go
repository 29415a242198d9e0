package wire

// The headers by which the gateway tells of an answer, beside its body. In canonical form.
const (
	HeaderBackend = "Sluice-Backend"
	HeaderPolicy  = "Sluice-Policy"
	HeaderQueue   = "Sluice-Queue-Ms"
	HeaderDropped = "Sluice-Dropped"
	HeaderReason  = "Sluice-Reason"
	HeaderTier    = "Sluice-Tier"
	HeaderCache   = "Sluice-Cache"
)
