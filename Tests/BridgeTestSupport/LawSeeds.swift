import Foundation

/// The seeds of a property test: in an ordinary run the number that the test gives, by the cost of a case; in a long run
/// `CHATBRIDGE_LAW_FACTOR` times as many; with `CHATBRIDGE_LAW_SEED` only that one, to reproduce a failure.
public enum LawSeeds {
    public static func seeds(_ ordinary: Int) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let only = environment["CHATBRIDGE_LAW_SEED"].flatMap({ UInt64($0) }) { return [only] }
        let factor = environment["CHATBRIDGE_LAW_FACTOR"].flatMap { UInt64($0) } ?? 1
        return Array(1...UInt64(ordinary) * max(factor, 1))
    }
}
