import Foundation

/// The seeds of a law's random cases: in an ordinary run as many as the law names, by what a case of it costs; in a long run
/// `CHATBRIDGE_LAW_FACTOR` times as many, so that each law takes so many times longer; and only the one that
/// `CHATBRIDGE_LAW_SEED` names where something is looked for.
public enum LawSeeds {
    public static func seeds(_ ordinary: Int) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let only = environment["CHATBRIDGE_LAW_SEED"].flatMap({ UInt64($0) }) { return [only] }
        let factor = environment["CHATBRIDGE_LAW_FACTOR"].flatMap { UInt64($0) } ?? 1
        return Array(1...UInt64(ordinary) * max(factor, 1))
    }
}
