/// Numeric replies, as far as the bridge sends them.
///
/// Source: modern.ircdocs.horse, "Numerics"; RFC 2812 §5; the IRCv3 specifications.
public enum IRCNumeric: UInt16, CaseIterable, Sendable {
    // MARK: Registration

    /// 001 RPL_WELCOME
    case rplWelcome = 1
    /// 002 RPL_YOURHOST
    case rplYourHost = 2
    /// 003 RPL_CREATED
    case rplCreated = 3
    /// 004 RPL_MYINFO
    case rplMyInfo = 4
    /// 005 RPL_ISUPPORT
    case rplISupport = 5

    // MARK: Server

    /// 221 RPL_UMODEIS
    case rplUModeIs = 221
    /// 251 RPL_LUSERCLIENT
    case rplLUserClient = 251
    /// 252 RPL_LUSEROP
    case rplLUserOp = 252
    /// 253 RPL_LUSERUNKNOWN
    case rplLUserUnknown = 253
    /// 254 RPL_LUSERCHANNELS
    case rplLUserChannels = 254
    /// 255 RPL_LUSERME
    case rplLUserMe = 255
    /// 263 RPL_TRYAGAIN
    case rplTryAgain = 263
    /// 265 RPL_LOCALUSERS
    case rplLocalUsers = 265
    /// 266 RPL_GLOBALUSERS
    case rplGlobalUsers = 266
    /// 351 RPL_VERSION
    case rplVersion = 351
    /// 371 RPL_INFO
    case rplInfo = 371
    /// 372 RPL_MOTD
    case rplMotd = 372
    /// 374 RPL_ENDOFINFO
    case rplEndOfInfo = 374
    /// 375 RPL_MOTDSTART
    case rplMotdStart = 375
    /// 376 RPL_ENDOFMOTD
    case rplEndOfMotd = 376
    /// 391 RPL_TIME
    case rplTime = 391

    // MARK: People

    /// 276 RPL_WHOISCERTFP
    case rplWhoisCertificate = 276
    /// 301 RPL_AWAY
    case rplAway = 301
    /// 302 RPL_USERHOST
    case rplUserHost = 302
    /// 303 RPL_ISON
    case rplIsOn = 303
    /// 305 RPL_UNAWAY
    case rplUnAway = 305
    /// 306 RPL_NOWAWAY
    case rplNowAway = 306
    /// 311 RPL_WHOISUSER
    case rplWhoisUser = 311
    /// 312 RPL_WHOISSERVER
    case rplWhoisServer = 312
    /// 313 RPL_WHOISOPERATOR
    case rplWhoisOperator = 313
    /// 314 RPL_WHOWASUSER
    case rplWhowasUser = 314
    /// 315 RPL_ENDOFWHO
    case rplEndOfWho = 315
    /// 317 RPL_WHOISIDLE
    case rplWhoisIdle = 317
    /// 318 RPL_ENDOFWHOIS
    case rplEndOfWhois = 318
    /// 319 RPL_WHOISCHANNELS
    case rplWhoisChannels = 319
    /// 320 RPL_WHOISSPECIAL
    case rplWhoisSpecial = 320
    /// 330 RPL_WHOISACCOUNT
    case rplWhoisAccount = 330
    /// 335 RPL_WHOISBOT
    case rplWhoisBot = 335
    /// 338 RPL_WHOISACTUALLY
    case rplWhoisActually = 338
    /// 352 RPL_WHOREPLY
    case rplWhoReply = 352
    /// 354 RPL_WHOSPCRPL
    case rplWhoSpcRpl = 354
    /// 369 RPL_ENDOFWHOWAS
    case rplEndOfWhowas = 369
    /// 378 RPL_WHOISHOST
    case rplWhoisHost = 378
    /// 379 RPL_WHOISMODES
    case rplWhoisModes = 379
    /// 671 RPL_WHOISSECURE
    case rplWhoisSecure = 671

    // MARK: Channels

    /// 321 RPL_LISTSTART
    case rplListStart = 321
    /// 322 RPL_LIST
    case rplList = 322
    /// 323 RPL_LISTEND
    case rplListEnd = 323
    /// 324 RPL_CHANNELMODEIS
    case rplChannelModeIs = 324
    /// 329 RPL_CREATIONTIME
    case rplCreationTime = 329
    /// 331 RPL_NOTOPIC
    case rplNoTopic = 331
    /// 332 RPL_TOPIC
    case rplTopic = 332
    /// 333 RPL_TOPICWHOTIME
    case rplTopicWhoTime = 333
    /// 341 RPL_INVITING
    case rplInviting = 341
    /// 353 RPL_NAMREPLY
    case rplNamReply = 353
    /// 366 RPL_ENDOFNAMES
    case rplEndOfNames = 366
    /// 367 RPL_BANLIST
    case rplBanList = 367
    /// 368 RPL_ENDOFBANLIST
    case rplEndOfBanList = 368

    // MARK: Refusals

    /// 400 ERR_UNKNOWNERROR
    case errUnknownError = 400
    /// 401 ERR_NOSUCHNICK
    case errNoSuchNick = 401
    /// 402 ERR_NOSUCHSERVER
    case errNoSuchServer = 402
    /// 403 ERR_NOSUCHCHANNEL
    case errNoSuchChannel = 403
    /// 404 ERR_CANNOTSENDTOCHAN
    case errCannotSendToChan = 404
    /// 405 ERR_TOOMANYCHANNELS
    case errTooManyChannels = 405
    /// 406 ERR_WASNOSUCHNICK
    case errWasNoSuchNick = 406
    /// 407 ERR_TOOMANYTARGETS
    case errTooManyTargets = 407
    /// 409 ERR_NOORIGIN
    case errNoOrigin = 409
    /// 410 ERR_INVALIDCAPCMD
    case errInvalidCapCmd = 410
    /// 411 ERR_NORECIPIENT
    case errNoRecipient = 411
    /// 412 ERR_NOTEXTTOSEND
    case errNoTextToSend = 412
    /// 417 ERR_INPUTTOOLONG
    case errInputTooLong = 417
    /// 421 ERR_UNKNOWNCOMMAND
    case errUnknownCommand = 421
    /// 422 ERR_NOMOTD
    case errNoMotd = 422
    /// 431 ERR_NONICKNAMEGIVEN
    case errNoNicknameGiven = 431
    /// 432 ERR_ERRONEUSNICKNAME
    case errErroneusNickname = 432
    /// 433 ERR_NICKNAMEINUSE
    case errNicknameInUse = 433
    /// 436 ERR_NICKCOLLISION
    case errNickCollision = 436
    /// 441 ERR_USERNOTINCHANNEL
    case errUserNotInChannel = 441
    /// 442 ERR_NOTONCHANNEL
    case errNotOnChannel = 442
    /// 443 ERR_USERONCHANNEL
    case errUserOnChannel = 443
    /// 451 ERR_NOTREGISTERED
    case errNotRegistered = 451
    /// 461 ERR_NEEDMOREPARAMS
    case errNeedMoreParams = 461
    /// 462 ERR_ALREADYREGISTERED
    case errAlreadyRegistered = 462
    /// 464 ERR_PASSWDMISMATCH
    case errPasswdMismatch = 464
    /// 465 ERR_YOUREBANNEDCREEP
    case errYoureBannedCreep = 465
    /// 472 ERR_UNKNOWNMODE
    case errUnknownMode = 472
    /// 473 ERR_INVITEONLYCHAN
    case errInviteOnlyChan = 473
    /// 476 ERR_BADCHANMASK
    case errBadChanMask = 476
    /// 479 ERR_BADCHANNAME
    case errBadChanName = 479
    /// 481 ERR_NOPRIVILEGES
    case errNoPrivileges = 481
    /// 482 ERR_CHANOPRIVSNEEDED
    case errChanOPrivsNeeded = 482
    /// 501 ERR_UMODEUNKNOWNFLAG
    case errUModeUnknownFlag = 501
    /// 502 ERR_USERSDONTMATCH
    case errUsersDontMatch = 502

    // MARK: Logging in

    /// 900 RPL_LOGGEDIN
    case rplLoggedIn = 900
    /// 901 RPL_LOGGEDOUT
    case rplLoggedOut = 901
    /// 902 ERR_NICKLOCKED
    case errNickLocked = 902
    /// 903 RPL_SASLSUCCESS
    case rplSASLSuccess = 903
    /// 904 ERR_SASLFAIL
    case errSASLFail = 904
    /// 905 ERR_SASLTOOLONG
    case errSASLTooLong = 905
    /// 906 ERR_SASLABORTED
    case errSASLAborted = 906
    /// 907 ERR_SASLALREADY
    case errSASLAlready = 907
    /// 908 RPL_SASLMECHS
    case rplSASLMechs = 908

    /// Three digits: `001`.
    public var code: String {
        let number = rawValue
        return String(unsafeUninitializedCapacity: 3) { out in
            let zero = UInt8(ascii: "0")
            out.initializeElement(at: 0, to: zero &+ UInt8(truncatingIfNeeded: number / 100 % 10))
            out.initializeElement(at: 1, to: zero &+ UInt8(truncatingIfNeeded: number / 10 % 10))
            out.initializeElement(at: 2, to: zero &+ UInt8(truncatingIfNeeded: number % 10))
            return 3
        }
    }
}
