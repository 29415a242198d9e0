// Package estimate predicts how many tokens a request has and will produce.
package estimate
