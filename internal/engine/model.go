package engine

// SeedName and ModelName are the files beside an embedded log.
const (
	SeedName  = "seed"
	ModelName = "model.yaml"
)
