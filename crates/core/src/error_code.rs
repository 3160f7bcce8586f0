//! The one table of error codes the API speaks (API-1 … API-4).
