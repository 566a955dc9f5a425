//! Probes, histograms, results files, charts and the report.
