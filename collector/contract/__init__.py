"""What both wings share: records, digests, protocol, campaign, money and judging. No torch, no click."""
