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

    /// 219 RPL_ENDOFSTATS
    case rplEndOfStats = 219
    /// 221 RPL_UMODEIS
    case rplUModeIs = 221
    /// 234 RPL_SERVLIST
    case rplServList = 234
    /// 235 RPL_SERVLISTEND
    case rplServListEnd = 235
    /// 242 RPL_STATSUPTIME
    case rplStatsUptime = 242
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
    /// 262 RPL_TRACEEND
    case rplTraceEnd = 262
    /// 265 RPL_LOCALUSERS
    case rplLocalUsers = 265
    /// 266 RPL_GLOBALUSERS
    case rplGlobalUsers = 266
    /// 351 RPL_VERSION
    case rplVersion = 351
    /// 364 RPL_LINKS
    case rplLinks = 364
    /// 365 RPL_ENDOFLINKS
    case rplEndOfLinks = 365
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
    /// 381 RPL_YOUREOPER
    case rplYoureOper = 381
    /// 391 RPL_TIME
    case rplTime = 391
    /// 704 RPL_HELPSTART
    case rplHelpStart = 704
    /// 705 RPL_HELPTXT
    case rplHelpTxt = 705
    /// 706 RPL_ENDOFHELP
    case rplEndOfHelp = 706

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
    /// 379 RPL_WHOISMODES
    case rplWhoisModes = 379
    /// 730 RPL_MONONLINE
    case rplMonOnline = 730
    /// 731 RPL_MONOFFLINE
    case rplMonOffline = 731
    /// 732 RPL_MONLIST
    case rplMonList = 732
    /// 733 RPL_ENDOFMONLIST
    case rplEndOfMonList = 733
    /// 734 ERR_MONLISTFULL
    case errMonListFull = 734
    /// 760 RPL_WHOISKEYVALUE
    case rplWhoisKeyValue = 760
    /// 761 RPL_KEYVALUE
    case rplKeyValue = 761
    /// 766 RPL_KEYNOTSET
    case rplKeyNotSet = 766
    /// 770 RPL_METADATASUBOK
    case rplMetadataSubOK = 770
    /// 771 RPL_METADATAUNSUBOK
    case rplMetadataUnsubOK = 771
    /// 772 RPL_METADATASUBS
    case rplMetadataSubs = 772
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
    /// 336 RPL_INVITELIST
    case rplInviteList = 336
    /// 337 RPL_ENDOFINVITELIST
    case rplEndOfInviteList = 337
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
    /// 408 ERR_NOSUCHSERVICE
    case errNoSuchService = 408
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
    /// 423 ERR_NOADMININFO
    case errNoAdminInfo = 423
    /// 431 ERR_NONICKNAMEGIVEN
    case errNoNicknameGiven = 431
    /// 432 ERR_ERRONEUSNICKNAME
    case errErroneusNickname = 432
    /// 433 ERR_NICKNAMEINUSE
    case errNicknameInUse = 433
    /// 441 ERR_USERNOTINCHANNEL
    case errUserNotInChannel = 441
    /// 442 ERR_NOTONCHANNEL
    case errNotOnChannel = 442
    /// 443 ERR_USERONCHANNEL
    case errUserOnChannel = 443
    /// 445 ERR_SUMMONDISABLED
    case errSummonDisabled = 445
    /// 446 ERR_USERSDISABLED
    case errUsersDisabled = 446
    /// 451 ERR_NOTREGISTERED
    case errNotRegistered = 451
    /// 461 ERR_NEEDMOREPARAMS
    case errNeedMoreParams = 461
    /// 462 ERR_ALREADYREGISTERED
    case errAlreadyRegistered = 462
    /// 464 ERR_PASSWDMISMATCH
    case errPasswdMismatch = 464
    /// 472 ERR_UNKNOWNMODE
    case errUnknownMode = 472
    /// 473 ERR_INVITEONLYCHAN
    case errInviteOnlyChan = 473
    /// 474 ERR_BANNEDFROMCHAN
    case errBannedFromChan = 474
    /// 478 ERR_BANLISTFULL
    case errBanListFull = 478
    /// 481 ERR_NOPRIVILEGES
    case errNoPrivileges = 481
    /// 482 ERR_CHANOPRIVSNEEDED
    case errChanOPrivsNeeded = 482
    /// 491 ERR_NOOPERHOST
    case errNoOperHost = 491
    /// 501 ERR_UMODEUNKNOWNFLAG
    case errUModeUnknownFlag = 501
    /// 502 ERR_USERSDONTMATCH
    case errUsersDontMatch = 502
    /// 524 ERR_HELPNOTFOUND
    case errHelpNotFound = 524
    /// 531 ERR_CANNOTSENDTOUSER
    case errCannotSendToUser = 531

    // MARK: Logging in

    /// 900 RPL_LOGGEDIN
    case rplLoggedIn = 900
    /// 901 RPL_LOGGEDOUT
    case rplLoggedOut = 901
    /// 903 RPL_SASLSUCCESS
    case rplSASLSuccess = 903
    /// 904 ERR_SASLFAIL
    case errSASLFail = 904
    /// 905 ERR_SASLTOOLONG
    case errSASLTooLong = 905
    /// 906 ERR_SASLABORTED
    case errSASLAborted = 906
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
