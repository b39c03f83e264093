import BridgeTypes
import Testing

@Suite("Histogram")
struct HistogramTests {
    @Test("a duration is counted at the first bound that it does not exceed")
    func places() {
        var histogram = Histogram()
        for bound in Histogram.bounds {
            histogram.observe(.microseconds(bound))
            histogram.observe(.microseconds(bound) + .nanoseconds(1))
        }
        histogram.observe(.seconds(-1))
        #expect(histogram.counts == [2] + [Int](repeating: 2, count: Histogram.bounds.count - 1) + [1])
        #expect(histogram.count == 2 * Histogram.bounds.count + 1)
    }

    @Test("a size is counted at the first bound that it does not exceed")
    func sizes() {
        var histogram = ByteHistogram()
        for bound in ByteHistogram.bounds {
            histogram.observe(bound)
            histogram.observe(bound + 1)
        }
        #expect(histogram.counts == [1] + [Int](repeating: 2, count: ByteHistogram.bounds.count - 1) + [1])
        #expect(histogram.sum == 2 * ByteHistogram.bounds.reduce(0, +) + ByteHistogram.bounds.count)
    }

    @Test("a quantile lies between the bounds of its count, in proportion")
    func quantiles() {
        var histogram = Histogram()
        #expect(histogram.quantile(0.5) == nil)
        histogram.observe(.milliseconds(4), times: 10)
        #expect(histogram.quantile(0.5) == .microseconds(3750))
        #expect(histogram.quantile(1) == .milliseconds(5))
        histogram.observe(.seconds(60), times: 10)
        #expect(histogram.quantile(0.99) == .milliseconds(2500))
    }

    @Test("what was counted since is the difference, and both together the sum")
    func sums() {
        var histogram = Histogram()
        histogram.observe(.milliseconds(4))
        let before = histogram
        histogram.observe(.milliseconds(1), times: 3)
        let since = histogram.since(before)
        #expect(since.count == 3 && since.sum == .milliseconds(3))
        #expect(before + since == histogram)
    }
}
