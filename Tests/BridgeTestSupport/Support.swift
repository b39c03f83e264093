import WireBytes
